"""A host's own addresses, and the other hosts that it reaches."""

import socket
import threading
from typing import Any

import pytest

from sparkwright.host.lib import addresses
from sparkwright.host.lib.addresses import Reach
from sparkwright.host.lib.processes import Outcome
from tests.tables import Tables

cases = Tables(__file__)

#: ``ip -o addr show scope global``: a wired LAN with privacy addresses, and Docker.
LISTED = cases.data["LISTED"]


def test_a_hosts_own_addresses_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Said:
        def __init__(self, *_: str) -> None:
            """Output of the command ip."""

        def outcome(self) -> Outcome:
            return Outcome(0, LISTED)

    monkeypatch.setattr(addresses, "Running", Said)
    assert addresses.Question().answer() == {
        "enP7s7": ("192.168.1.11", "fd00::11"),
        "docker0": ("172.17.0.1",),
    }


@cases("address", "fits")
def test_an_address_with_one_meaning_for_all_hosts_is_chosen(address: str, fits: bool) -> None:
    assert addresses.usable(address) is fits


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Names and their addresses; addresses and their answers."""
    names: dict[str, list[str]] = {}
    answers: dict[str, OSError | None] = {}

    def getaddrinfo(name: str, port: int, **_: Any) -> list[Any]:
        if name not in names and not addresses.usable(name):
            raise socket.gaierror(-2, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in item else socket.AF_INET, 1, 6, "", (item, port))
            for item in names.get(name, [name])
        ]

    def create_connection(at: tuple[str, int], timeout: float) -> Any:
        if (error := answers.get(at[0], TimeoutError("timed out"))) is not None:
            raise error
        return socket.socket()

    monkeypatch.setattr(addresses.socket, "getaddrinfo", getaddrinfo)  # type: ignore[attr-defined]
    monkeypatch.setattr(addresses.socket, "create_connection", create_connection)  # type: ignore[attr-defined]
    monkeypatch.setattr("sparkwright.host.lib.documents.text", lambda _: "10.0.0.9 attic.example\n")
    return {"names": names, "answers": answers}


def _reached(*names: str) -> Any:
    return addresses.reached((Reach("spark-2", names, 8000),))["spark-2"]


REFUSED = ConnectionRefusedError(111, "Connection refused")


def test_a_name_unknown_to_this_host_falls_back_to_the_address(network: dict[str, Any]) -> None:
    network["answers"]["10.0.0.2"] = REFUSED  # the host is up, and no program listens
    result = _reached("kitchen", "10.0.0.2")
    assert (result.address, result.written, result.dns) == ("10.0.0.2", "10.0.0.2", False)
    assert result.tried == (
        "kitchen: [Errno -2] Name or service not known",
        "10.0.0.2: nothing listens there yet",
    )


def test_without_a_listener_ipv4_comes_first(network: dict[str, Any]) -> None:
    """Services listen on IPv4 by default; an IPv4 address that answers is chosen."""
    network["answers"] |= {"fd00::2": REFUSED, "10.0.0.2": REFUSED}
    assert _reached("fd00::2", "10.0.0.2").address == "10.0.0.2"
    network["answers"]["fd00::2"] = None
    assert _reached("fd00::2", "10.0.0.2").address == "fd00::2"


def test_a_link_local_address_of_a_name_is_never_used(network: dict[str, Any]) -> None:
    network["names"]["spark-2.local"] = ["fe80::2", "127.0.1.1"]
    network["answers"] |= {"fe80::2": None, "127.0.1.1": None}
    result = _reached("spark-2.local")
    assert result.address is None
    assert result.tried == ("spark-2.local: no address that other hosts could use",)


def test_ipv6_is_used_if_ipv4_does_not_answer(network: dict[str, Any]) -> None:
    network["names"]["spark-2.local"] = ["fd00::2", "10.0.0.2"]
    network["answers"]["fd00::2"] = None
    assert _reached("spark-2.local").address == "fd00::2"
    network["answers"]["10.0.0.2"] = None
    assert _reached("spark-2.local").address == "10.0.0.2"


def test_only_names_in_dns_are_kept_for_haproxy(network: dict[str, Any]) -> None:
    """HAProxy's resolver reads neither /etc/hosts nor mDNS, and would mark the replica as down."""
    for name, dns in (("spark-2.example", True), ("spark-2.local", False), ("spark-2", False),
                      ("attic.example", False)):  # fmt: skip
        network["names"][name] = ["10.0.0.2"]
        network["answers"]["10.0.0.2"] = None
        assert _reached(name).dns is dns


def test_a_silent_resolver_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:

    over = threading.Event()
    monkeypatch.setattr(addresses, "_ALL", 0.1)
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: [over.wait(5)][:0])  # type: ignore[attr-defined]
    result = _reached("spark-2.example")
    over.set()
    assert result.address is None
    assert "in time" in result.tried[0]

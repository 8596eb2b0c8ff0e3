"""Addresses of the fabric by pyinfra itself: what is run on a host, and in which order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_host, ctx_state

import roles.fabric
from sparkwright.facts import others
from sparkwright.facts.memory import memory
from sparkwright.host.fabric import NETPLAN, FabricState
from sparkwright.host.fabric_addresses import AddressesAnswer
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.lock import LockAnswer
from sparkwright.operations.fabric import addresses
from tests.operations.harness import fake, run
from tests.operations.real import host_of, real_state
from tests.operations.sites import site, spark
from tests.unit.checks.fabric.test_addresses import host as state_of_host

TEXT = "network:\n  version: 2\n"
PINGS = [Ping("192.168.177.12", "enp1s0f1np1", 8972)]
WANTED = {"shape": "pair", "hosts": ["spark-1", "spark-2"]}


def _executed(answer: AddressesAnswer) -> tuple[list[str], Any]:
    state = real_state(lock=LockAnswer(True), **{"fabric-addresses": answer})
    others.follow(state)
    host = host_of(state)
    for operation, arguments in (
        (addresses.configured, {"text": TEXT, "devices": ["enp1s0f1np1"], "pending": ["it"]}),
        (addresses.proved, {"pings": PINGS}),
        (addresses.kept, {"pings": PINGS}),
    ):
        add_op(state, operation, **arguments, _sudo=True, _sudo_password="")
    connector: Any = host.connector
    connector.executed_commands.clear()
    state.set_stage(StateStage.Execute)
    state.is_executing = True
    with suppress(PyinfraError):  # pyinfra ends a run that has no hosts left
        run_ops(state)
    return list(connector.executed_commands), host


def test_the_timer_is_there_before_the_file_and_gone_after_the_proof() -> None:
    commands, host = _executed(AddressesAnswer())
    kinds = [
        next((kind for kind in ("sparkwright-lock", "sparkwright-fabric-addresses", "netplan apply",
                                f"chmod 600 {NETPLAN}") if kind in one), None)
        for one in commands
    ]  # fmt: skip
    ours = [one for one in kinds if one]
    assert ours == [
        "sparkwright-lock", "sparkwright-fabric-addresses", f"chmod 600 {NETPLAN}",
        "netplan apply", "sparkwright-fabric-addresses", "sparkwright-fabric-addresses",
    ]  # fmt: skip
    assert memory(host).failure is None
    assert memory(host).changes[-1] == f"wrote {NETPLAN}, and every peer answers"


def test_nothing_is_written_where_netplan_does_not_accept_it() -> None:
    commands, host = _executed(AddressesAnswer(("netplan generate does not accept it",)))
    assert not [one for one in commands if "netplan apply" in one or "chmod" in one]
    assert memory(host).failure == "netplan generate does not accept it"


def test_dry_shows_the_text_and_does_nothing() -> None:
    host = fake(None)
    host.state.config.DIFF = True
    done = run(host, addresses.proved, PINGS)
    assert done.host.lines == ["would ping 192.168.177.12 over enp1s0f1np1"]
    assert host.asked == []


def test_nothing_to_do_is_said() -> None:
    host = fake(None)
    assert run(host, addresses.configured, TEXT, ["a"], pending=[]).commands == []
    assert host.noops == ["the addresses are as desired"]


def _role(monkeypatch: pytest.MonkeyPatch, state: FabricState) -> tuple[Any, list[Any]]:
    hosts = [spark("spark-1", fabric=state), spark("spark-2", fabric=state)]
    site(*hosts, fabric_addresses=WANTED)
    called: list[Any] = []
    monkeypatch.setattr(roles.fabric, "connection", lambda _: ("192.168.1.5", "192.168.1.21"))
    for name in ("configured", "proved", "kept"):
        monkeypatch.setattr(addresses, name, lambda n=name, **rest: called.append((n, rest)))
    with ctx_state.use(hosts[0].state), ctx_host.use(hosts[0]):
        roles.fabric.addresses()
    return hosts[0], called


def test_a_host_gets_what_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    host, called = _role(monkeypatch, state_of_host(1))
    (name, given), (then, pings), (last, _) = called
    assert (name, then, last) == ("configured", "proved", "kept")
    assert given["devices"] == ["enp1s0f1np1", "enP2p1s0f1np1"]
    assert given["_sudo"] is True
    assert "addresses: [192.168.177.11/24]" in given["text"]
    assert len(pings["pings"]) == 2
    assert host.programs == ["fabric"]


def test_a_host_without_a_cable_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    host, called = _role(monkeypatch, state_of_host())
    assert called == []
    assert host.memory.failure == "refused: fabric-addresses"
    assert any("0 network devices" in line for line in host.lines)

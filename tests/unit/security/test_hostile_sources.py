"""Registries, hubs and git servers that answer anything: bounded, and one error of the user's."""

import datetime as dt
import gzip
import socket
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve import queries
from sparkwright.resolve.git import resolve_commit
from sparkwright.resolve.hub import resolve_model
from sparkwright.resolve.registry import ask_registry
from sparkwright.tls.authority import authority, host_certificate
from tests.host.proxy.test_tls import served
from tests.host.security import hostile
from tests.host.serving import Handler, listening
from tests.tables import Tables

cases = Tables(__file__)

#: What asks each kind of server at an address.
ASK: dict[str, Callable[[str], Any]] = {
    "registry": lambda url: ask_registry(url, "org/image", "tag", "me:secret"),
    "hub": lambda url: resolve_model(url, "org/model", "main", "hf_secret", marks=()),
    "git": lambda url: resolve_commit(url, "main"),
}
#: Prints by how many KiB the process is larger than after the first query, and each message.
RISE = """
from sparkwright.findings.user_error import UserError
from tests.unit.security.test_hostile_sources import ASK, peak
before = None
for port in sys.argv[2:]:
    try:
        ASK[sys.argv[1]]("http://127.0.0.1:" + port)
    except UserError as error:
        before = before or peak()
        print(peak() - before, error.findings[0].observed.splitlines()[0])
"""


def peak() -> int:
    """The most KiB that this process had."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in status)["VmHWM"].split()[0])


class Answers(Handler):
    """Answers everything with ``answer``: status, body, headers; and keeps what it was asked."""

    answer: tuple[int, bytes, dict[str, str]]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.reply(*self.answer)


@cache
def bomb() -> bytes:
    """900 MiB of spaces, as gzip: of ten parts, since packing takes time."""
    return gzip.compress(b" " * (90 << 20)) * 10


#: Status, body and headers by attack.
ATTACKS: dict[str, Callable[[], tuple[int, bytes, dict[str, str]]]] = {
    "gzip": lambda: (200, bomb(), {"Content-Encoding": "gzip"}),
    "lists": lambda: (200, b"[" + b"[]," * (5 << 20) + b"[]]", {}),
    "nested": lambda: (200, b'{"a":' * (1 << 20), {}),
    "length": lambda: (200, b"{}", {"Content-Length": str(10**15)}),
    "redirect": lambda: (302, b"", {"Location": "/x", "Content-Length": str(10**15)}),
}


@pytest.mark.parametrize("source", ASK)
def test_no_answer_takes_the_controllers_memory(source: str) -> None:
    answers = [(200, b"{}", {}), *(attack() for attack in ATTACKS.values())]
    with ExitStack() as stack:
        ports = [
            str(stack.enter_context(listening(Answers, answer=answer, asked=[])))
            for answer in answers
        ]
        text, _ = hostile.client(RISE, source, *ports)
    rises = [line.split(" ", 1) for line in text.splitlines()[1:]]
    for attack, (rise, message) in zip(ATTACKS, rises, strict=True):
        assert message
        assert int(rise) << 10 < 64 << 20, attack


@pytest.mark.parametrize("source", ASK)
@pytest.mark.parametrize("attack", [hostile.silent, hostile.head, hostile.going_on])
def test_no_answer_takes_the_controllers_time(
    source: str, attack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SECONDS", 1.0, raising=False)
    began = time.monotonic()
    with (
        hostile.serving(attack) as port,
        pytest.raises(UserError, match=r"could not be asked|more"),
    ):
        ASK[source](f"http://127.0.0.1:{port}")
    assert time.monotonic() - began < 5


@cases("status", "body", "headers")
@pytest.mark.parametrize("source", ASK)
def test_every_answer_ends_in_the_users_error(
    source: str, status: int, body: str, headers: dict[str, str]
) -> None:
    answer = status, body.encode("latin-1"), headers
    with listening(Answers, answer=answer, asked=[]) as port, pytest.raises(UserError) as error:
        ASK[source](f"http://127.0.0.1:{port}")
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize("source", ASK)
def test_credentials_do_not_follow_a_redirect_to_another_server(source: str) -> None:
    elsewhere: list[tuple[str, str | None]] = []
    with listening(Answers, answer=(200, b"{}", {}), asked=elsewhere) as other:
        away = (302, b"", {"Location": f"http://127.0.0.1:{other}/"})
        with listening(Answers, answer=away, asked=[]) as port, pytest.raises(UserError):
            ASK[source](f"http://127.0.0.1:{port}")
    assert {credentials for _, credentials in elsewhere} == {None}


@cases("ip", "depth")
def test_addresses_are_judged_by_how_far_in_the_network_they_are(ip: str, depth: int) -> None:
    assert queries._depth(ip) == depth


@cases("target")
@pytest.mark.parametrize("header", ["Location", "WWW-Authenticate"])
def test_no_server_leads_to_a_machines_credentials(header: str, target: str) -> None:
    """By a redirect, and as the token service of a registry."""
    status, text = (302, target) if header == "Location" else (401, f'Bearer realm="{target}"')
    with (
        listening(Answers, answer=(status, b"", {header: text}), asked=[]) as port,
        pytest.raises(UserError, match=r"it leads to|HTTP 302"),
    ):
        ASK["registry"](f"http://127.0.0.1:{port}")


@cases("private", "ip", "taken")
def test_a_server_of_the_internet_leads_to_private_ones_that_are_named_alone(
    private: list[str], ip: str, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never to this machine, whatever is named."""

    def connected(address: tuple[str, int], _: float) -> socket.socket:
        connection = socket.socket()
        connection.connect(("127.0.0.1", address[1]))
        return connection

    server = queries.Server("http://example.com", private)
    asking = queries.asking("x", "the hub", answer="a model", setting="hub_endpoint")
    refused = nullcontext() if taken else pytest.raises(UserError, match=rf"storage.corp \({ip}\)")
    with listening(Answers, answer=(200, b"{}", {}), asked=[]) as port:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (ip, port))])
        monkeypatch.setattr(socket, "create_connection", connected)
        with refused as error, asking:
            server.get(f"http://storage.corp:{port}/")
    if error is not None:
        assert ("private_servers" in str(error.value)) is ip.startswith("10.")


def test_https_does_not_lead_to_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = dt.datetime.now(dt.UTC)
    signer = authority(now, tmp_path / "ca")
    tls = served(host_certificate(signer, "server", ("127.0.0.1",), now), tmp_path)
    (tmp_path / "ca.crt").write_text(signer.pem)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.crt"))
    asked: list[tuple[str, str | None]] = []
    with listening(Answers, answer=(200, b"{}", {}), asked=asked) as port:
        target = f"http://127.0.0.1:{port}/"
        for answer in (
            (302, b"", {"Location": target}),
            (401, b"", {"WWW-Authenticate": f'Bearer realm="{target}"'}),
        ):
            secure: list[tuple[str, str | None]] = []
            with (
                listening(Answers, answer=answer, asked=secure, tls=tls) as own,
                pytest.raises(UserError),
            ):
                ASK["registry"](f"https://127.0.0.1:{own}")
            assert secure
    assert asked == []


def test_an_account_of_an_address_goes_to_its_server_alone() -> None:
    asked: list[tuple[str, str | None]] = []
    references = b"0" * 40 + b"\trefs/heads/main\n"
    with listening(Answers, answer=(200, references, {}), asked=asked) as port:
        assert resolve_commit(f"http://me:a%20b@127.0.0.1:{port}/x", "main") == "0" * 40
    ((path, account),) = asked
    assert path == "/x/info/refs?service=git-upload-pack"
    assert account == f"Basic {b64encode(b'me:a b').decode()}"

"""Peers under TLS: an eavesdropper in between, a false peer, and a client without TLS."""

import datetime as dt
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from sparkwright.host.fetch import peer_server
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.tls.authority import Authority, authority, host_certificate
from sparkwright.tls.names import own_name
from tests.host.fetch.conftest import Fetch
from tests.host.peer_sharing import KEY, PEER, RUN
from tests.host.peer_sharing import serving as serving_from
from tests.host.serving import accepting

NOW = dt.datetime.now(dt.UTC)
NAME = own_name("seed")
#: Bytes of a file that the hub's model has.
PIECE = b'{"model_type": "fake"}'


@dataclass
class Tapped:
    """An attacker between two hosts, who forwards and records all bytes."""

    port: int
    heard: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        accepting(self._listening, self._tap)

    def close(self) -> None:
        """Stop forwarding."""
        self._listening.close()

    def _tap(self, mine: socket.socket) -> None:
        its = socket.create_connection(("127.0.0.1", self.port))
        for pair in ((mine, its), (its, mine)):
            threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, row: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while block := row.recv(1 << 16):
                self.heard += block
                other.sendall(block)
            other.shutdown(socket.SHUT_WR)


@dataclass
class Served:
    """A host that serves peers, and an eavesdropper in between."""

    fetch: Fetch
    ca: Authority
    tap: Tapped

    def take(self, leech: Fetch, identity: TlsIdentity | None) -> str:
        """Fetch everything from the peer or the hub, as a host that verifies the peer."""
        keys = leech.root / "peer-keys"
        tls = {self.tap.address: identity} if identity else {}
        keys.write_text(json.dumps(asdict(PeerKeys(RUN, PEER, {self.tap.address: KEY}, tls))))
        return leech.complete(apart=True, peers=[self.tap.address], peer_token_file=str(keys))


@pytest.fixture
def serving(
    fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[bool], Served]]:
    """Factory of hosts that have the model and serve it, with or without TLS."""
    monkeypatch.setattr(peer_server, "is_own_docker", lambda _: False)
    ca = authority(NOW, tmp_path / "ca", names=[NAME])
    path = tmp_path / "host.pem"
    path.write_text(host_certificate(ca, "seed", (NAME,), NOW))
    seed = Fetch(fetch.hub, tmp_path / "seed")
    seed.root.mkdir()
    seed.complete(apart=True)
    with ExitStack() as stack:

        def make(tls: bool) -> Served:
            _, port = stack.enter_context(serving_from(seed.root, str(path) if tls else None))
            return Served(seed, ca, stack.enter_context(closing(Tapped(port))))

        yield make


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "clear"])
def test_an_eavesdropper_reads_no_weights_and_no_names(
    serving: Callable[[bool], Served], leech: Fetch, tls: bool
) -> None:
    """The case without TLS shows that the tap would record weights and names."""
    served = serving(tls)
    asked = len(leech.hub.hits)
    served.take(leech, TlsIdentity(NAME, served.ca.pem) if tls else None)
    assert len(leech.hub.hits) == asked
    assert leech.progress()["bytes_peers"] == sum(map(len, leech.hub.files.values()))
    heard = bytes(served.tap.heard)
    assert len(heard) > leech.progress()["bytes_peers"]
    for message in (PIECE, b"safetensors", PEER.encode(), b"Authorization: Sparkwright"):
        assert (message in heard) is not tls, message


@pytest.mark.parametrize("mistake", ["another CA", "another name", "a public CA"])
def test_no_byte_is_read_from_a_server_without_the_peers_certificate(
    serving: Callable[[bool], Served], leech: Fetch, tmp_path: Path, mistake: str
) -> None:
    """The request reveals no content to the false peer: only the real peer gets the run's key."""
    served = serving(True)
    other = authority(NOW, tmp_path / "other", names=[NAME])
    output = served.take(
        leech,
        {
            "another CA": TlsIdentity(NAME, other.pem),
            "another name": TlsIdentity(own_name("other"), served.ca.pem),
            "a public CA": TlsIdentity(NAME, None),
        }[mistake],
    )
    assert leech.progress()["bytes_peers"] == 0
    assert f"the peer {served.tap.address} fails (its certificate: " in output


def test_a_plain_server_in_place_of_tls_gets_no_request(
    serving: Callable[[bool], Served], leech: Fetch
) -> None:
    served = serving(False)
    output = served.take(leech, TlsIdentity(NAME, served.ca.pem))
    assert leech.progress()["bytes_peers"] == 0
    assert "(no TLS: " in output
    assert b"Authorization" not in served.tap.heard


def test_a_plain_client_gets_no_byte_and_blocks_no_other_client(
    serving: Callable[[bool], Served], leech: Fetch
) -> None:
    served = serving(True)
    silent = [socket.create_connection(("127.0.0.1", served.tap.port)) for _ in range(80)]
    with socket.create_connection(("127.0.0.1", served.tap.port), timeout=20) as clear:
        clear.sendall(b"GET /challenge HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        with suppress(ConnectionError):
            while block := clear.recv(4096):
                answer += block
        assert b"HTTP" not in answer
    began = time.monotonic()
    served.take(leech, TlsIdentity(NAME, served.ca.pem))
    assert leech.progress()["bytes_peers"] == sum(map(len, leech.hub.files.values()))
    assert time.monotonic() - began < 10
    for item in silent:
        item.close()

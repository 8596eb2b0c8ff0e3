"""A neighbour without a key keeps a peer server busy."""

import datetime as dt
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from select import select
from subprocess import PIPE
from threading import Thread, active_count

import pytest

from sparkwright.host.fetch import peer_server
from sparkwright.host.fetch.peer_server import PeerServer
from sparkwright.host.fetch.peers import PeerClient
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.host.lib.connections import Connections
from sparkwright.tls.authority import authority, host_certificate
from sparkwright.tls.names import own_name
from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import KEY, PEER, RUN, Seed, challenge, header, serving
from tests.host.security.hostile import memory

MIB = 1 << 20


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[PeerServer, int]]:
    """A server in this process, with short deadlines."""
    with serving(tmp_path) as made:
        yield made


@dataclass
class Attacked:
    """A server that neighbours can reach, and the host that fetches from it meanwhile."""

    address: str
    port: int
    tls: dict[str, TlsIdentity]
    #: Threads of this process before the server began; earlier tests can leave threads.
    threads: int

    def client(self) -> PeerClient:
        """A connection of a host with a key, for a file of MIB bytes."""
        keys = PeerKeys(RUN, PEER, {self.address: KEY}, self.tls)
        return PeerClient(self.address, keys, f"/files/models/org--model/{COMMIT}/file", MIB)


#: Program that connects this many times from one address, sends, and resets or keeps each
#: connection.
ATTACK = """
import itertools, json, socket, struct, sys, time
port, number, reset, sent = json.loads(sys.argv[1])
held = []
for _, text in zip(range(number), itertools.cycle(sent)):
    try:
        item = socket.create_connection(("127.0.0.1", port), 5, ("127.9.9.9", 0))
        item.sendall(bytes.fromhex(text))
        if reset:  # RST instead of FIN
            item.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            item.close()
        held.append(item)
    except OSError:
        pass
print(len(held), flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["tls", "clear"])
def attacked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Attacked]:
    """A server with TLS, and a server without TLS."""
    monkeypatch.setattr(peer_server, "is_own_docker", lambda _: False)
    folder = tmp_path / "models/org--model" / COMMIT
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(bytes(MIB))
    certificate, now = tmp_path / "host.pem", dt.datetime.now(dt.UTC)
    ca = authority(now, tmp_path / "ca", names=("seed", own_name("seed")))
    certificate.write_text(host_certificate(ca, "seed", (own_name("seed"),), now))
    is_tls = request.param == "tls"
    threads = active_count()
    with serving(tmp_path, str(certificate) if is_tls else None) as (_, port):
        address = f"http://127.0.0.1:{port}"
        tls = {address: TlsIdentity(own_name("seed"), ca.pem)} if is_tls else {}
        yield Attacked(address, port, tls, threads)


#: The beginning of a TLS handshake, which announces 512 bytes.
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("number", "sent", "reset"),
    [
        (10_000, (b"", HELLO, b"GET /challenge HTTP/1.1\r\n\r\n"), True),
        (1_000, (b"", HELLO[:1], HELLO), False),
        (1_000, (b"", b"GET /chall", b"GET /challenge HTTP/1.1\r\nX: "), False),
    ],
    ids=["resets", "slow handshakes", "half requests"],
)
def test_a_neighbour_without_a_key_neither_ends_the_server_nor_blocks_clients(
    attacked: Attacked, number: int, sent: tuple[bytes, ...], reset: bool
) -> None:
    arguments = json.dumps([attacked.port, number, reset, [text.hex() for text in sent]])
    with ExitStack() as stack:
        before = stack.enter_context(closing(attacked.client()))
        assert before.piece(0, MIB) == bytes(MIB)
        process = subprocess.Popen([sys.executable, "-c", ATTACK, arguments], stdout=PIPE)
        stack.callback(process.wait)
        stack.callback(process.kill)
        assert process.stdout is not None
        is_over = False
        while not is_over:
            is_over = bool(select([process.stdout], [], [], 0.02)[0])
            with closing(attacked.client()) as client:
                assert client.piece(0, MIB) == before.piece(0, MIB) == bytes(MIB)
        assert int(stack.enter_context(process.stdout).readline()) > number * 0.9
        assert active_count() - attacked.threads <= peer_server.MOST_OF_ONE + 16


def test_a_flood_blocks_no_client_and_takes_no_memory(seed: Seed) -> None:
    ends = time.monotonic() + 4

    def flood() -> None:
        while time.monotonic() < ends:
            with suppress(OSError), socket.create_connection(("127.0.0.1", seed.port), 5) as item:
                item.sendall(b"GET /files/models/a/b HTTP/1.1\r\n\r\n" * 20)
                item.settimeout(0.2)
                item.recv(100)

    threads = [Thread(target=flood) for _ in range(8)]
    for thread in threads:
        thread.start()
    answered = 0
    while time.monotonic() < ends:
        assert seed.get("/files/models/a/b")[0] == 404
        answered += 1
    for thread in threads:
        thread.join()
    assert answered > 10
    assert memory(seed.process.pid, peak=False) < 128 * MIB


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * (1 << 20), b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200_000,
        b"\x00" * (1 << 20), b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", b"\r\n\r\n",
        b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", b"CONNECT elsewhere:22 HTTP/1.1\r\n\r\n",
    ],
    ids=lambda head: repr(head[:24]),
)  # fmt: skip
def test_an_endless_request_head_ends_the_connection(seed: Seed, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", seed.port), 5) as item:
        with suppress(OSError):
            item.sendall(head)
        item.settimeout(5)
        text = b""
        with suppress(ConnectionError):
            while block := item.recv(4096):
                text += block
    assert text == b"" or text.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))
    assert seed.is_well()
    assert memory(seed.process.pid, peak=False) < 128 * MIB


def test_a_trickled_request_head_has_one_deadline(
    served: tuple[PeerServer, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole head has a deadline, even if each byte arrives in time."""
    monkeypatch.setattr(peer_server, "UNKNOWN", 1.0)
    with socket.create_connection(("127.0.0.1", served[1]), 5) as item:
        began = time.monotonic()
        with suppress(ConnectionError):
            for byte in b"GET /challenge HTTP/1.1\r\nX: " + b"y" * 100:
                item.sendall(bytes([byte]))
                time.sleep(0.1)
                if time.monotonic() - began > 5:
                    break
        assert time.monotonic() - began < 3


def test_a_client_that_reads_nothing_loses_its_connection(
    seed: Seed, served: tuple[PeerServer, int], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setattr(peer_server, "_PIECE_TIME", 1.0)
    folder = tmp_path / "models/org--model" / COMMIT / "large"
    folder.parent.mkdir(parents=True)
    with folder.open("wb") as file:
        file.truncate(8 * MIB)
    seed.port = served[1]
    connection = seed.connect()
    path, wanted = f"/files/models/org--model/{COMMIT}/large", f"bytes=0-{8 * MIB - 1}"
    shown = header(challenge(connection), path, wanted)
    raw = connection.sock
    assert raw is not None
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(
        f"GET {path} HTTP/1.1\r\nRange: {wanted}\r\nAuthorization: {shown}\r\n\r\n".encode()
    )
    until = time.monotonic() + 8
    while served[0].connections._addresses and time.monotonic() < until:
        time.sleep(0.1)
    assert not served[0].connections._addresses
    connection.close()


def test_clients_without_a_key_make_room_for_clients_with_a_key() -> None:
    pairs = [socket.socketpair() for _ in range(8)]
    ours = [pair[0] for pair in pairs]
    connections = Connections(most=4, most_of_one=2)
    assert connections.admit(ours[0], "10.0.0.1")
    connections.identified(ours[0])
    assert connections.admit(ours[1], "10.0.0.1")
    # A third connection of the same address closes the oldest connection without a key.
    assert connections.admit(ours[2], "10.0.0.1")
    assert pairs[1][1].recv(1) == b""
    connections.identified(ours[2])
    assert not connections.admit(ours[3], "10.0.0.1")
    # Other addresses get connections until clients with a key hold all of them.
    assert connections.admit(ours[3], "10.0.0.2")
    assert connections.admit(ours[4], "10.0.0.3")
    assert connections.admit(ours[5], "10.0.0.4")
    assert pairs[3][1].recv(1) == b""
    connections.identified(ours[4])
    connections.identified(ours[5])
    assert not connections.admit(ours[6], "10.0.0.5")
    connections.leave(ours[0])
    assert connections.admit(ours[6], "10.0.0.5")
    for pair in pairs:
        for item in pair:
            item.close()


def test_only_requests_with_a_key_keep_the_server_running(
    served: tuple[PeerServer, int],
) -> None:
    server, port = served
    server.request = replace(server.request, idle=2.0)
    ends = time.monotonic() + 6
    while not server.ended.is_set() and time.monotonic() < ends:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as item:
            item.sendall(b"GET /challenge HTTP/1.1\r\n\r\n")
            item.recv(100)
        time.sleep(0.1)
    assert server.ended.is_set()


def test_a_server_ends_when_its_keys_are_gone(
    served: tuple[PeerServer, int], tmp_path: Path
) -> None:
    """If its directories are removed, the running server ends, so that another server can start."""
    server, _ = served
    assert not server.ended.wait(0.5)
    (tmp_path / "keys").rename(tmp_path / "gone")
    assert server.ended.wait(10)

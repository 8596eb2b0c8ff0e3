"""A neighbour without a key keeps a peer server busy."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import pytest

from sparkwright.host.fetch import peer_server
from sparkwright.host.fetch.peer_server import Connections, PeerServer
from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import Seed, challenge, header, serving

MIB = 1 << 20


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[PeerServer, int]]:
    """A server in this process, whose deadlines can be made short."""
    with serving(tmp_path) as made:
        yield made


def _memory(seed: Seed) -> int:
    """The server's resident bytes."""
    status = Path(f"/proc/{seed.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


def _threads(seed: Seed) -> int:
    status = Path(f"/proc/{seed.process.pid}/status").read_text()
    return int(status.partition("Threads:")[2].split()[0])


@pytest.mark.parametrize("sent", [b"", b"GET /files/", b"GET / HTTP/1.1\r\nX: "])
def test_half_open_requests_keep_nobody_out(seed: Seed, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(400):
            item = stack.enter_context(socket.create_connection(("127.0.0.1", seed.port), 5))
            with suppress(OSError):
                item.sendall(sent)
        assert seed.is_well()
        until = time.monotonic() + 5
        while _threads(seed) > peer_server.MOST_OF_ONE + 8 and time.monotonic() < until:
            time.sleep(0.1)
        assert _threads(seed) <= peer_server.MOST_OF_ONE + 8
        assert _memory(seed) < 128 * MIB


def test_a_flood_keeps_nobody_out_and_takes_no_memory(seed: Seed) -> None:
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
    assert _memory(seed) < 128 * MIB


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
def test_a_head_without_end_ends_the_connection(seed: Seed, head: bytes) -> None:
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
    assert _memory(seed) < 128 * MIB


def test_a_trickled_head_has_one_deadline(
    served: tuple[PeerServer, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte in time does not make the whole in time."""
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


def test_who_reads_nothing_loses_the_connection(
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
    while served[0]._connections._addresses and time.monotonic() < until:
        time.sleep(0.1)
    assert not served[0]._connections._addresses
    connection.close()


def test_who_has_no_key_makes_room_and_who_has_one_stays() -> None:
    pairs = [socket.socketpair() for _ in range(8)]
    ours = [pair[0] for pair in pairs]
    connections = Connections(most=4, most_of_one=2)
    assert connections.admit(ours[0], "10.0.0.1")
    connections.known(ours[0])
    assert connections.admit(ours[1], "10.0.0.1")
    # A third of the same address: the oldest without a key goes.
    assert connections.admit(ours[2], "10.0.0.1")
    assert pairs[1][1].recv(1) == b""
    connections.known(ours[2])
    assert not connections.admit(ours[3], "10.0.0.1")
    # Others find room, until the whole is full of those with a key.
    assert connections.admit(ours[3], "10.0.0.2")
    assert connections.admit(ours[4], "10.0.0.3")
    assert connections.admit(ours[5], "10.0.0.4")
    assert pairs[3][1].recv(1) == b""
    connections.known(ours[4])
    connections.known(ours[5])
    assert not connections.admit(ours[6], "10.0.0.5")
    connections.leave(ours[0])
    assert connections.admit(ours[6], "10.0.0.5")
    for pair in pairs:
        for item in pair:
            item.close()


def test_only_who_has_a_key_keeps_the_server_running(
    served: tuple[PeerServer, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, port = served
    monkeypatch.setattr(server, "_idle", 2.0)
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
    """Its directories were removed under it: it makes room for another server."""
    server, _ = served
    assert not server.ended.wait(0.5)
    (tmp_path / "keys").rename(tmp_path / "gone")
    assert server.ended.wait(10)

"""A hostile peer, or an attacker in a peer's place, answers a host that fetches."""

import hashlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from sparkwright.host.fetch import peer_auth, peers
from sparkwright.host.fetch.holes import Part
from sparkwright.host.fetch.messages import Failed
from sparkwright.host.fetch.peers import Peers, common
from sparkwright.host.fetch.ranges import Limit
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from tests.host.fetch.conftest import Fetch
from tests.host.peer_sharing import DOCKER, KEY, SECRET, SERVER_KEY, fetch_from, keys_for
from tests.host.security import hostile
from tests.host.serving import accepting

MIB = 1 << 20
HELD = b'{"ranges": [[0, %d]], "alive": true, "ended": false}'


@dataclass
class Asked:
    """A request that a fake peer got."""

    line: str
    headers: dict[str, str]
    challenge: str

    def sign(self, status: int, body: bytes, content_range: str = "", key: str = KEY) -> str:
        """Signature of an answer to the request."""
        _, _, number, _ = peer_auth.claimed(self.headers["authorization"]) or ("", "", "", "")
        path, wanted = self.line.split(" ")[1], self.headers.get("range", "")
        arguments = (self.challenge, "GET", path, wanted, str(status), content_range)
        return peer_auth.answer(key, number, *arguments, hashlib.sha256(body).hexdigest())


#: Function that answers a request on a connection, and its later requests.
_Behaviour = Callable[[socket.socket, Asked], None]
Fake = Callable[[_Behaviour], "FakePeer"]
Take = Callable[..., "Taker"]


@dataclass
class FakePeer:
    """Server in a peer's place, with answers that a test sets."""

    behaviour: _Behaviour
    asked: list[Asked] = field(default_factory=list)
    heard: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        accepting(self._listening, self._serve)

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError):
            while True:
                text = b""
                while not text.endswith(b"\r\n\r\n"):
                    block = connection.recv(4096)
                    if not block:
                        return
                    text += block
                    self.heard += block
                line, *lines = text.decode().strip().split("\r\n")
                headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
                asked = Asked(line, headers, "0" * 32)
                self.asked.append(asked)
                if "/challenge " in line:
                    answer(connection, 200, b"")
                else:
                    self.behaviour(connection, asked)


def answer(
    connection: socket.socket, status: int, body: bytes, *headers: str, length: int | None = None
) -> None:
    """Send an answer with a challenge for the next request."""
    lines = (
        f"HTTP/1.1 {status} X",
        f"Content-Length: {len(body) if length is None else length}",
        f"Sparkwright-Challenge: {'0' * 32}",
        *headers,
    )
    connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode() + body)


def signed(
    connection: socket.socket,
    asked: Asked,
    status: int,
    body: bytes,
    *headers: str,
    content_range: str = "",
) -> None:
    """Answer as a peer with the key."""
    if content_range:
        headers = (*headers, f"Content-Range: {content_range}")
    signature = asked.sign(status, body, content_range)
    answer(connection, status, body, f"Sparkwright-Answer: {signature}", *headers)


def lists(connection: socket.socket, asked: Asked, size: int = 8 * MIB) -> bool:
    """Answer a request for ranges with the whole file. Return whether the request was signed."""
    if "?ranges" in asked.line:
        signed(connection, asked, 200, HELD % size)
    return "?ranges" in asked.line


@pytest.fixture
def fake() -> Iterator[Callable[[_Behaviour], FakePeer]]:
    made: list[FakePeer] = []

    def make(behaviour: _Behaviour) -> FakePeer:
        made.append(FakePeer(behaviour))
        return made[-1]

    yield make
    for item in made:
        item.close()


def _without_the_key(connection: socket.socket, asked: Asked) -> None:
    body = HELD % 9 if "?ranges" in asked.line else b"x" * 9
    answer(connection, 200, body, f"Sparkwright-Answer: {asked.sign(200, body, key='guess')}")


def _unsigned(connection: socket.socket, asked: Asked) -> None:
    answer(connection, 200, HELD % 9)


def _signed_for_another(connection: socket.socket, asked: Asked) -> None:
    body = HELD % 9
    answer(connection, 200, body, f"Sparkwright-Answer: {asked.sign(206, body)}")


def _body_changed(connection: socket.socket, asked: Asked) -> None:
    answer(connection, 200, HELD % 9, f"Sparkwright-Answer: {asked.sign(200, HELD % 8)}")


def _large(connection: socket.socket, asked: Asked) -> None:
    answer(connection, 200, b"", f"Sparkwright-Answer: {'0' * 64}", length=700 * MIB)
    for _ in range(700):
        connection.sendall(b"[" * MIB)


def _large_without_a_length(connection: socket.socket, asked: Asked) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(700):
        connection.sendall(b"100000\r\n" + b"[" * MIB + b"\r\n")


def _nested(connection: socket.socket, asked: Asked) -> None:
    body = b"[" * 100_000
    signed(connection, asked, 200, body)


def _ranges_outside(connection: socket.socket, asked: Asked) -> None:
    body = b'{"ranges": [[-5, 99999999999999]], "alive": true, "ended": false}'
    signed(connection, asked, 200, body)


def _nothing_like_http(connection: socket.socket, asked: Asked) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")


@pytest.mark.parametrize(
    "behaviour",
    [
        _without_the_key, _unsigned, _signed_for_another, _body_changed, _large,
        _large_without_a_length, hostile.head, hostile.going_on, _nested, _ranges_outside,
        _nothing_like_http,
    ],
    ids=lambda item: item.__name__,
)  # fmt: skip
def test_a_fetch_continues_without_a_hostile_peer(
    fetch: Fetch, fake: Fake, behaviour: _Behaviour
) -> None:
    peer = fake(behaviour)
    fetch.root.mkdir(exist_ok=True)
    keys = keys_for(fetch.root, peer.address)
    began = time.monotonic()
    process = fetch.start(peers=[peer.address], peer_token_file=keys)
    most = _most_memory(process)
    assert process.stderr is not None
    text = process.stderr.read()
    assert process.wait() == 0, text
    fetch.assert_whole()
    assert f"the peer {peer.address} fails" in text
    assert "Traceback" not in text
    assert fetch.progress()["bytes_peers"] == 0
    assert most < 200 * MIB
    assert time.monotonic() - began < 30
    # An attacker in the peer's place receives no secret.
    heard = peer.heard.decode()
    assert "Sparkwright run=" in heard
    assert not any(key in heard for key in (SECRET, SERVER_KEY, KEY, *DOCKER[1:]))


def _most_memory(process: subprocess.Popen[str]) -> int:
    """Peak of a process's resident bytes, until it ends."""
    most = 0
    while process.poll() is None:
        with suppress(OSError, ValueError, IndexError):
            most = max(most, hostile.memory(process.pid))
        time.sleep(0.02)
    return most


def test_a_redirect_is_not_followed(fetch: Fetch, fake: Fake) -> None:
    elsewhere = fake(_unsigned)

    def redirect(connection: socket.socket, asked: Asked) -> None:
        signed(connection, asked, 302, b"", f"Location: {elsewhere.address}/x")

    assert "HTTP 302" in fetch_from(fetch, fake(redirect).address)
    assert elsewhere.asked == []


# --- The fetch in this process, with shorter deadlines than the program's own


@dataclass
class Taker:
    """A file that is fetched from one peer."""

    request: FetchRequest
    peers: Peers
    part: Part

    def take(self) -> float:
        """Fetch the file, and return the elapsed seconds."""
        began = time.monotonic()
        self.peers.fill(self.part)
        return time.monotonic() - began


@pytest.fixture
def taker(tmp_path: Path) -> Callable[..., Taker]:
    def make(peer: FakePeer, size: int = 8 * MIB) -> Taker:
        request = FetchRequest(
            endpoint="http://hub", repo="org/model", revision="a" * 40,
            destination=str(tmp_path / "models/org--model" / ("a" * 40)), state_dir=str(tmp_path),
            peers=(peer.address,), peer_token_file=keys_for(tmp_path, peer.address),
        )  # fmt: skip
        file = FetchFile("weights", size, "b" * 64)
        part = Part(tmp_path / "part", file, lambda *_: None)
        part.prepare(mapped=False)
        peers = Peers(request, Event(), Limit(None))
        return Taker(request, peers, part)

    return make


def _alive(connection: socket.socket, asked: Asked) -> None:
    signed(connection, asked, 200, b'{"ranges": [], "alive": true, "ended": false}')


def test_a_silent_peer_is_abandoned(
    taker: Take, fake: Fake, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "WINDOW", 2.0)
    item = taker(fake(_alive))
    assert 2 <= item.take() < 4
    assert "sent less than 32 KiB/s over 2 s" in capfd.readouterr().err
    assert not item.peers.left


def test_a_slow_peer_is_abandoned(taker: Take, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer sends fewer bytes per second than required."""
    monkeypatch.setattr(peers, "WINDOW", 3.0)
    held, size = [0], 64 * MIB

    def behave(connection: socket.socket, asked: Asked) -> None:
        if "?ranges" in asked.line:
            held[0] += 65536 if len(peer.asked) % 8 == 0 else 0
            ranges = [[0, held[0]]] if held[0] else []
            body = json.dumps({"ranges": ranges, "alive": True, "ended": False}).encode()
            signed(connection, asked, 200, body)
        else:
            _piece(connection, asked, size)

    peer = fake(behave)
    assert taker(peer, size).take() < 8


def _piece(connection: socket.socket, asked: Asked, size: int) -> None:
    start, end = map(int, asked.headers["range"].removeprefix("bytes=").split("-"))
    body, content_range = b"w" * (end + 1 - start), f"bytes {start}-{end}/{size}"
    signed(connection, asked, 206, body, content_range=content_range)


@pytest.mark.parametrize("at", ["head", "list", "piece"])
def test_a_trickling_peer_is_abandoned(
    taker: Take, fake: Fake, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The whole answer has a deadline, even if each byte arrives in time."""
    for name in ("_ANSWER", "_PIECE_TIME"):
        monkeypatch.setattr(peers, name, 1.0)

    def trickle(connection: socket.socket) -> None:
        for _ in range(600):
            connection.sendall(b"x")
            time.sleep(0.1)

    def behave(connection: socket.socket, asked: Asked) -> None:
        if at == "head":
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        elif at == "list":
            answer(connection, 200, b"", f"Sparkwright-Answer: {'0' * 64}", length=1000)
        elif lists(connection, asked):
            return
        else:
            answer(connection, 206, b"", f"Sparkwright-Answer: {'0' * 64}", length=8 * MIB)
        trickle(connection)

    item = taker(fake(behave))
    assert item.take() < 12
    assert not item.peers.left


def test_no_unverified_byte_reaches_the_disk(taker: Take, fake: Fake) -> None:
    def behave(connection: socket.socket, asked: Asked) -> None:
        if lists(connection, asked):
            return
        # An attacker between peer and host changes one bit of the bytes that the peer has signed.
        content_range = f"bytes 0-{8 * MIB - 1}/{8 * MIB}"
        good = b"w" * (8 * MIB)
        made = f"Sparkwright-Answer: {asked.sign(206, good, content_range)}"
        answer(connection, 206, b"v" + good[1:], f"Content-Range: {content_range}", made)

    item = taker(fake(behave))
    item.take()
    assert not item.peers.left
    assert item.part.missing() == [(0, 8 * MIB)]
    assert item.part.path.stat().st_blocks == 0


def test_a_range_that_was_not_requested_is_refused(taker: Take, fake: Fake) -> None:
    def behave(connection: socket.socket, asked: Asked) -> None:
        if lists(connection, asked):
            return
        signed(connection, asked, 206, b"w" * 100, content_range=f"bytes 0-99/{8 * MIB}")

    item = taker(fake(behave))
    item.take()
    assert item.part.path.stat().st_blocks == 0


def test_a_peer_without_the_controllers_key_gets_no_request(
    taker: Take, fake: Fake, tmp_path: Path
) -> None:
    peer = fake(_alive)
    item = taker(peer)
    keys_for(tmp_path, "http://127.0.0.1:1")
    peers = Peers(item.request, Event(), Limit(None))
    peers.fill(item.part)
    assert peer.asked == []
    assert not peers.left


def test_a_proxy_in_the_environment_gets_no_request(
    taker: Take, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, gone = fake(_unsigned), fake(_unsigned)
    gone.close()
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.address)
    item = taker(gone)
    item.take()
    assert proxy.asked == []
    assert not item.peers.left


def test_a_disk_that_loses_written_bytes_ends_the_fetch(
    taker: Take, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZFS stores zeros as holes, so that the program would fetch the same range endlessly."""
    monkeypatch.setattr(Part, "missing", lambda part: [(0, part.file.size)])

    def behave(connection: socket.socket, asked: Asked) -> None:
        if not lists(connection, asked):
            _piece(connection, asked, 8 * MIB)

    with pytest.raises(Failed, match=r"bytes 0 to 8388608 were written, .* reports them as a hole"):
        taker(fake(behave)).take()


def test_only_whole_pages_are_requested_from_a_peer() -> None:
    page = 65536
    assert common([(0, 8 * page)], [(1, 3 * page + 1)]) == [(page, 3 * page)]
    assert common([(0, 8 * page)], [(1, page)]) == []
    assert common([(page, 8 * page + 5)], [(0, 9 * page)]) == [(page, 8 * page + 5)]

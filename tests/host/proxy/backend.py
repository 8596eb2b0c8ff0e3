"""A replica that a test controls, and that records its requests."""

import base64
import hashlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.host.serving import Handler, listening

#: The longest wait of these tests, long enough for a slow machine.
PATIENCE = 60.0


@dataclass
class Seen:
    """One request as the replica received it, and whether its TLS session was resumed."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    resumed: bool


@dataclass
class Backend:
    """A replica with its own health port.

    The body of a request selects the answer. ``{"stream": n}``: n chunks, each of which waits for
    ``go``. ``{"hold": true}``: an answer that waits for ``go``. ``{"die": true}``, or ``die`` with
    the replica's name: the connection ends without an answer. ``{"cut": true}``: an answer that is
    cut off.

    Attributes:
        go: semaphore, released once for every chunk or held answer.
        begun: semaphore, released when a request with a body has arrived.
        left: event, set when a client disconnected before its answer.
        healthy: answer of the health port.
    """

    name: str
    port: int = 0
    health_port: int = 0
    healthy: bool = True
    seen: list[Seen] = field(default_factory=list)
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    left: threading.Event = field(default_factory=threading.Event)


class _Health(Handler):
    backend: Backend

    def do_GET(self) -> None:
        right = self.path == "/generates" and self.backend.healthy
        self.reply(200 if right else 503)


class _Requests(Handler):
    protocol_version = "HTTP/1.1"
    backend: Backend

    def do_GET(self) -> None:
        self._note(b"")
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self._echo()
        elif "die" in self.path:
            self.close_connection = True
        else:
            self._answer()

    def do_POST(self) -> None:
        body = self.body()
        self._note(body)
        wanted = json.loads(body) if body.startswith(b"{") else {}
        if wanted:
            self.backend.begun.release()
        if wanted.get("die") in (True, self.backend.name):
            self.close_connection = True
        elif wanted.get("cut"):
            self.close_connection = True
            head = {"Content-Type": "text/event-stream", "Content-Length": "100"}
            self.reply(200, b"data: 0", head)
        elif chunks := wanted.get("stream"):
            self._stream(chunks)
        elif wanted.get("hold"):
            self._hold()
        else:
            self._answer()

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_GET

    def _note(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        resumed = getattr(self.connection, "session_reused", False)
        self.backend.seen.append(Seen(self.command, self.path, headers, body, resumed))

    def _answer(self) -> None:
        text = json.dumps({"replica": self.backend.name}).encode()
        self.reply(200, text, {"Content-Type": "application/json"})

    def _stream(self, chunks: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(chunks):
            if not self.backend.go.acquire(timeout=PATIENCE):
                return
            text = f"data: {number} of {self.backend.name}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.write(b"0\r\n\r\n")

    def _hold(self) -> None:
        """Answer when released, or record that the client has disconnected."""
        while not self.backend.go.acquire(blocking=False):
            if self._is_alone():
                self.backend.left.set()
                self.close_connection = True
                return
        self._answer()

    def _is_alone(self) -> bool:
        come, _, _ = select.select([self.connection], [], [], 0.01)
        try:
            return bool(come) and not self.connection.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            return True

    def _echo(self) -> None:
        """Answer the upgrade by RFC 6455, which HAProxy checks, then echo all data."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        accepted = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_header("Sec-WebSocket-Accept", accepted)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        while data := self.connection.recv(4096):
            self.connection.sendall(data)
        self.close_connection = True


@contextmanager
def serving(
    name: str, tls: ssl.SSLContext | None = None, port: int = 0, health_port: int = 0
) -> Iterator[Backend]:
    """A replica in this process.

    Args:
        tls: the replica's certificate for https; None for http.
        port, health_port: the replica's ports; free ports by default.
    """
    backend = Backend(name)
    with (
        listening(_Requests, port=port, tls=tls, backend=backend) as backend.port,
        listening(_Health, port=health_port, tls=tls, backend=backend) as backend.health_port,
    ):
        yield backend

"""A server that speaks as vLLM behind its proxy does, and says what a test wants."""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.unit.site_terminal import KEY


@dataclass
class Model:
    """What it serves and says, and what it was asked.

    Attributes:
        deltas: of the events of an answer.
        wait: seconds between two events.
        tokens: of an answer, as it says.
        redirect: where it sends everybody.
        refuses: status and words for every chat.
        seen: method, path, Authorization and body of every request.
        cut: how many answers the client left.
    """

    names: tuple[str, ...] = ("qwen36-35b-heretic", "qwen36-fast", "qwen36-deep")
    deltas: list[dict[str, Any]] = field(default_factory=lambda: [{"content": "Hello."}])
    wait: float = 0.0
    tokens: int = 11
    redirect: str | None = None
    refuses: tuple[int, str] | None = None
    port: int = 0
    seen: list[tuple[str, str, str | None, Any]] = field(default_factory=list)
    cut: int = 0

    def left(self, seconds: float = 10) -> int:
        """``cut``, once one was left: a server sees it at the second piece that nobody takes."""
        deadline = time.monotonic() + seconds
        while not self.cut and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.cut

    @property
    def asked(self) -> list[Any]:
        """The bodies of the chats."""
        return [body for method, _, _, body in self.seen if method == "POST"]


@contextmanager
def speaking(
    model: Model, context: ssl.SSLContext | None = None, port: int | None = None
) -> Iterator[Model]:
    """The server, at a port of the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._seen(None)
            if self._let_in():
                self._json(200, {"data": [{"id": name} for name in model.names]})

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            self._seen(json.loads(self.rfile.read(size)))
            if not self._let_in():
                return
            if model.refuses:
                status, said = model.refuses
                self._json(status, {"error": {"message": said}})
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for delta in model.deltas:
                    self._event({"choices": [{"delta": delta}]})
                    time.sleep(model.wait)
                self._event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
                self._event({"choices": [], "usage": {"completion_tokens": model.tokens}})
                self._chunk(b"data: [DONE]\n\n")
                self._chunk(b"")
            except OSError:
                model.cut += 1

        def _seen(self, body: Any) -> None:
            shown = self.headers["Authorization"]
            model.seen.append((self.command, self.path, shown, body))

        def _let_in(self) -> bool:
            if model.redirect:
                self.send_response(307)
                self.send_header("Location", model.redirect + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False
            if self.headers["Authorization"] != f"Bearer {KEY}":
                self._json(401, {"error": "Unauthorized"})
                return False
            return True

        def _json(self, status: int, data: Any) -> None:
            text = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _event(self, data: Any) -> None:
            self._chunk(f"data: {json.dumps(data)}\n\n".encode())

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

        def log_message(self, *_: object) -> None:
            """The tests look at what it was asked."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that goes away is what some tests want."""

    server = _listening(Quiet, Handler, port)
    if context:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    model.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _listening(
    kind: type[ThreadingHTTPServer], handler: type[BaseHTTPRequestHandler], named: int | None
) -> ThreadingHTTPServer:
    """At a port that a service behind a proxy can have, and that no client is given."""
    for port in [named] if named else random.sample(range(20000, 32000), 20):
        with suppress(OSError):
            return kind(("127.0.0.1", port), handler)
    raise AssertionError("no free port")

"""A server that answers as vLLM behind its proxy does, with texts that a test sets."""

import json
import random
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from tests.host.serving import Handler
from tests.unit.site_terminal import KEY


@dataclass
class Model:
    """Answers of the fake server, and its requests.

    Attributes:
        deltas: deltas in the events of an answer.
        wait: seconds between two events.
        tokens: reported tokens of an answer.
        redirect: target for every request.
        refuses: status and text of the answer to every chat.
        answer: answer to every POST, as JSON; None for a stream.
        seen: method, path, Authorization and body of every request.
        cut: number of answers during which the client disconnected.
    """

    names: tuple[str, ...] = ("qwen36-35b-heretic", "qwen36-fast", "qwen36-deep")
    deltas: list[dict[str, Any]] = field(default_factory=lambda: [{"content": "Hello."}])
    wait: float = 0.0
    tokens: int = 11
    redirect: str | None = None
    refuses: tuple[int, str] | None = None
    answer: Any = None
    port: int = 0
    seen: list[tuple[str, str, str | None, Any]] = field(default_factory=list)
    cut: int = 0

    def left(self, seconds: float = 10) -> int:
        """Wait until ``cut`` is not zero, which takes two unread pieces; return ``cut``."""
        deadline = time.monotonic() + seconds
        while not self.cut and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.cut

    @property
    def asked(self) -> list[Any]:
        """The bodies of the chats."""
        return [body for method, _, _, body in self.seen if method == "POST"]

    def events(self) -> Iterator[bytes]:
        """The stream of an answer."""
        for delta in self.deltas:
            yield _event({"choices": [{"delta": delta}]})
            time.sleep(self.wait)
        yield _event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        yield _event({"choices": [], "usage": {"completion_tokens": self.tokens}})
        yield b"data: [DONE]\n\n"
        yield b""


def _event(data: Any) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: Model

    def handle_error(self, *_: object) -> None:
        """Ignore errors of a client that disconnects, since some tests disconnect."""


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        model = self.server.model
        body = json.loads(self.body() or b"null")
        key = self.headers["Authorization"]
        model.seen.append((self.command, self.path, key, body))
        if model.redirect:
            self._answer(307, "", Location=model.redirect + self.path)
        elif key != f"Bearer {KEY}":
            self._answer(401, json.dumps({"error": "Unauthorized"}))
        elif self.command == "GET":
            self._answer(200, json.dumps({"data": [{"id": name} for name in model.names]}))
        elif model.refuses:
            status, message = model.refuses
            self._answer(status, json.dumps({"error": {"message": message}}))
        elif model.answer:
            self._answer(200, json.dumps(model.answer))
        else:
            self._stream(model)

    do_POST = do_GET

    def _answer(self, status: int, text: str, **headers: str) -> None:
        self.reply(status, text.encode(), headers)

    def _stream(self, model: Model) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for chunk in model.events():
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        except OSError:
            model.cut += 1


@contextmanager
def speaking(
    model: Model, context: ssl.SSLContext | None = None, port: int | None = None
) -> Iterator[Model]:
    """The server, at a port of the loopback address."""
    server = _listening(port)
    server.model, model.port = model, server.server_port
    if context:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _listening(named: int | None) -> _Server:
    """Listen on a port outside of the clients' range, which a service behind a proxy may use."""
    for port in [named] if named else random.sample(range(20000, 32000), 20):
        with suppress(OSError):
            return _Server(("127.0.0.1", port), _Handler)
    raise AssertionError("no free port")

"""Servers of tests, in their own process: each connection in a thread, until the block ends."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import SystemRandom
from socketserver import BaseRequestHandler
from typing import Any


def free_port() -> int:
    """A free port below the range that connections of other tests use."""
    for port in SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("", port))
            return port
    raise AssertionError("no port is free")


def accepting(listening: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Serve connections from now on, until the socket is closed."""

    def run() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """Handler whose answers have a length, without a log."""

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def body(self) -> bytes:
        """The request's body."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer a request; the answer to a HEAD request has no body."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that disconnect, since some tests disconnect."""


@contextmanager
def listening(
    handler: type[BaseRequestHandler],
    address: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    **fields: Any,
) -> Iterator[int]:
    """Serve HTTP on a port, and yield the port; the handler's class gets the given attributes."""
    with _Server((address, port), type("Bound", (handler,), fields)) as server:
        if tls:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()

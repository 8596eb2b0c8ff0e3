"""What takes notices: an HTTP server, and a mail server, each on a free port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any


@dataclass
class Received:
    """What came: path, headers and body of each request; lines of each mail."""

    status: int = 200
    location: str | None = None
    refused: str | None = None
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    mails: list[list[str]] = field(default_factory=list)
    port: int = 0


class _Http(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        """Take it, and answer as ordered."""
        got: Received = self.server.got
        text = self.rfile.read(int(self.headers["Content-Length"]))
        got.requests.append((self.path, dict(self.headers), json.loads(text)))
        self.send_response(got.status)
        if got.location:
            self.send_header("Location", got.location)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class _Smtp(StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        """Just enough of SMTP."""
        got: Received = self.server.got
        self.wfile.write(b"220 here\r\n")
        for raw in self.rfile:
            word = raw[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                got.mails.append([line.decode().rstrip("\r\n") for line in lines])
            elif word == b"RCPT" and got.refused:
                self.wfile.write(f"550 {got.refused}\r\n".encode())
                continue
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
            if word == b"QUIT":
                return


@contextmanager
def _serving(server: Any) -> Iterator[Received]:
    server.got = got = Received()
    got.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def http() -> Iterator[Received]:
    """A server that takes every POST."""
    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), _Http)) as got:
        yield got


@contextmanager
def smtp() -> Iterator[Received]:
    """A mail server that takes every mail."""
    ThreadingTCPServer.daemon_threads = True
    with _serving(ThreadingTCPServer(("127.0.0.1", 0), _Smtp)) as got:
        yield got

"""Receivers of notices: an HTTP server, and a mail server, each on a free port."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from tests.host.serving import Handler, listening


@dataclass
class Received:
    """Received path, headers and body of each request; lines of each mail."""

    status: int = 200
    location: str | None = None
    refused: str | None = None
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    mails: list[list[str]] = field(default_factory=list)
    port: int = 0


class _Http(Handler):
    got: Received

    def do_POST(self) -> None:
        """Take it, and answer as ordered."""
        got = self.got
        got.requests.append((self.path, dict(self.headers), json.loads(self.body())))
        self.reply(got.status, b"{}", {"Location": got.location} if got.location else {})

    do_GET = do_POST


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
def http() -> Iterator[Received]:
    """A server that takes every POST."""
    got = Received()
    with listening(_Http, got=got) as got.port:
        yield got


@contextmanager
def smtp() -> Iterator[Received]:
    """A mail server that takes every mail."""
    ThreadingTCPServer.daemon_threads = True
    with ThreadingTCPServer(("127.0.0.1", 0), _Smtp) as server:
        got = server.got = Received(port=server.server_address[1])  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield got
        server.shutdown()

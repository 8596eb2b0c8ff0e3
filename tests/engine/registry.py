"""A registry of one repository in memory, with the routes for pushing and resolving a tag."""

import contextlib
import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.host.serving import listening

_KEPT = 1 << 20
"""Blobs up to this size are kept; layers are only hashed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: Type and content by tag and digest; content by digest.
    manifests: ClassVar[dict[str, tuple[str, bytes]]]
    blobs: ClassVar[dict[str, bytes]]

    def do_HEAD(self) -> None:
        self._look(body=False)

    def do_GET(self) -> None:
        self._look(body=True)

    def do_POST(self) -> None:
        self._answer(202, {"Location": "/upload"})

    def do_PUT(self) -> None:
        path = urlsplit(self.path)
        left, digest, kept = int(self.headers["Content-Length"]), hashlib.sha256(), bytearray()
        while left:
            piece = self.rfile.read(min(left, _KEPT))
            left -= len(piece)
            digest.update(piece)
            if len(kept) + len(piece) <= _KEPT:
                kept += piece
        name = f"sha256:{digest.hexdigest()}"
        if path.path == "/upload":
            if parse_qs(path.query)["digest"] != [name]:
                self._answer(400, {})
                return
            self.blobs[name] = bytes(kept)
        else:
            for expected in (path.path.rpartition("/")[2], name):
                self.manifests[expected] = (self.headers["Content-Type"], bytes(kept))
        self._answer(201, {})

    def _look(self, *, body: bool) -> None:
        kind, _, name = self.path.rpartition("/")
        headers: dict[str, str] = {}
        content: bytes | None = None
        if kind.endswith("/manifests") and name in self.manifests:
            headers["Content-Type"], content = self.manifests[name]
            digest = hashlib.sha256(content).hexdigest()
            headers["Docker-Content-Digest"] = f"sha256:{digest}"
        elif kind.endswith("/blobs"):
            content = self.blobs.get(name)
        if content is None:
            self._answer(404, {})
        else:
            self._answer(200, headers, content, body=body)

    def _answer(
        self, status: int, headers: dict[str, str], content: bytes = b"", *, body: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The address of a registry on a free port of 127.0.0.1."""
    handler = type("Handler", (_Handler,), {"manifests": {}, "blobs": {}})
    with listening(handler) as port:
        yield f"http://127.0.0.1:{port}"

"""Serves this host's models and images to peers and to its own Docker, also while being fetched.

`GET /files/models/<org--name>/<commit>/<path>` and `/files/images/<digest>/<path>` return a file,
with support for ranges. With `?ranges` they list the ranges that are on the disk, whether a fetch
runs that will add more ("alive"), and whether the file will not change any more ("ended").
`/v2/...` is the reading half of a container registry over the same images: it sends a blob's bytes
as they arrive, so that Docker unpacks while the rest is downloaded.

Every request needs the token, as Bearer or as the password of Basic authentication.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
import signal
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from sparkwright.host.contracts.fetch import PeerRoots, PeerServerRequest
from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import FAILED, OK, Failed
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import read_peer_server

_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIECE = 8 << 20
_WAIT = 0.1
#: Seconds that a request of Docker waits for a fetch to start or to continue.
_PATIENCE = 10.0
#: Writers end on multiples of this: bytes beyond the last one may be half written.
_SETTLED = 256 << 10


class Store:
    """Finds files below the two roots."""

    def __init__(self, roots: PeerRoots) -> None:
        self.models = Path(roots.models)
        self.images = Path(roots.images)

    def parent(self, kind: str, place: list[str]) -> tuple[Path, str] | None:
        """Return the directory of all revisions, and the revision; None for an invalid path."""
        if any(part == "" or part.startswith(".") for part in place):
            return None
        if kind == "models" and len(place) == 2 and _HEX.fullmatch(place[1]):
            return self.models / place[0], place[1]
        if kind == "images" and len(place) == 1 and _HEX.fullmatch(place[0]):
            return self.images, place[0]
        return None

    def find(self, parent: Path, revision: str, path: str) -> tuple[Path, bool] | None:
        """Return the file and whether it is complete; None if nothing of it is on the disk."""
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts):
            return None
        stage = parent / f".staging-{revision}"
        for file, complete in (
            (parent / revision / path, True),
            (stage / "files" / path, True),
            (stage / "parts" / f"{path}.part", False),
        ):
            if file.is_file() and file.resolve().is_relative_to(parent.resolve()):
                return file, complete
        return None

    def blob(self, digest: str) -> tuple[Path, bool] | None:
        """Return a blob or manifest of any image, as find()."""
        for place in self.images.glob("*"):
            revision = place.name.removeprefix(".staging-")
            if _HEX.fullmatch(revision):
                found = self.find(self.images, revision, digest)
                if found:
                    return found
        return None

    def fetching(self, parent: Path, revision: str) -> bool:
        """Return whether a fetch of this revision runs."""
        try:
            holder = json.loads((parent / f".staging-{revision}" / "holder.json").read_text())
            command = Path(f"/proc/{int(holder['pid'])}/cmdline").read_bytes()
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return b"fetch.py" in command

    def ended(self, parent: Path, revision: str) -> bool:
        """Return whether a revision is complete and nothing will be added to it."""
        return (parent / revision).is_dir() and not (parent / f".staging-{revision}").exists()

    def any_fetching(self) -> bool:
        """Return whether any image is being fetched."""
        return any(
            self.fetching(self.images, place.name.removeprefix(".staging-"))
            for place in self.images.glob(".staging-*")
        )


def available(file: Path, *, complete: bool) -> list[list[int]]:
    """Return the ranges of a file that are on the disk."""
    size = file.stat().st_size
    if complete:
        return [[0, size]] if size else []
    found, at = [], 0
    for start, end in [*holes.missing(file, size), (size, size)]:
        # Only the end of a range that is followed by a hole can be half written.
        settled = start if start == size else start // _SETTLED * _SETTLED
        if settled > at:
            found.append([at, settled])
        at = end
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # The thread of a client that disappeared ends.
    timeout = 60

    def do_GET(self) -> None:
        """Answer, and note the time for the idle limit."""
        self.server.used()
        try:
            self._answer(body=self.command == "GET")
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        finally:
            self.server.used()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests."""

    def _answer(self, *, body: bool) -> None:
        if not self._allowed():
            self._plain(401, b"", {"WWW-Authenticate": 'Basic realm="sparkwright"'})
            return
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        if parts[0] == "files":
            self._file(parts[1:], ranges=url.query == "ranges", body=body)
        elif parts[0] == "v2":
            self._registry(parts[1:], body=body)
        else:
            self._plain(404, b"")

    def _allowed(self) -> bool:
        try:
            token = self.server.token_file.read_text().strip()
        except OSError:
            return False
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme == "Basic":
            try:
                given = base64.b64decode(given).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        return bool(token) and hmac.compare_digest(given.strip().encode(), token.encode())

    def _file(self, parts: list[str], *, ranges: bool, body: bool) -> None:
        depth = 3 if parts[:1] == ["models"] else 2
        store = self.server.store
        place = store.parent(parts[0], parts[1:depth]) if parts else None
        if place is None:
            self._plain(404, b"")
            return
        found = store.find(*place, "/".join(parts[depth:]))
        if ranges:
            answer = {
                "ranges": available(found[0], complete=found[1]) if found else [],
                "alive": store.fetching(*place),
                "ended": store.ended(*place),
            }
            self._plain(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})
        elif found is None:
            self._plain(404, b"")
        else:
            self._bytes(found[0], complete=True, kind="application/octet-stream", body=body)

    def _registry(self, parts: list[str], *, body: bool) -> None:
        if parts in ([""], []):
            self._plain(200, b"{}", {"Content-Type": "application/json"})
            return
        digest = parts[-1].removeprefix("sha256:")
        if len(parts) < 3 or parts[-2] not in ("manifests", "blobs") or len(digest) != 64:
            self._plain(404, b"")
            return
        found = self._wait_for(digest)
        if found is None:
            self._plain(404, b"")
            return
        kind = "application/octet-stream"
        if parts[-2] == "manifests":
            kind = json.loads(found[0].read_text()).get(
                "mediaType", "application/vnd.oci.image.manifest.v1+json"
            )
        self._bytes(found[0], complete=found[1], kind=kind, body=body, digest=parts[-1])

    def _wait_for(self, digest: str) -> tuple[Path, bool] | None:
        """Wait for a blob to appear; for small ones to be complete, since manifests are parsed."""
        store, until = self.server.store, time.monotonic() + _PATIENCE
        while not self.server.ended.is_set():
            found = store.blob(digest)
            if found is not None and (found[1] or found[0].stat().st_size > 1 << 20):
                return found
            if store.any_fetching():
                until = time.monotonic() + _PATIENCE
            elif time.monotonic() > until:
                return None
            self.server.used()
            time.sleep(_WAIT)
        return None

    def _bytes(
        self, path: Path, *, complete: bool, kind: str, body: bool, digest: str | None = None
    ) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start, end = _range(self.headers.get("Range"), size)
            self.send_response(200 if (start, end) == (0, size) else 206)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(end - start))
            self.send_header("Accept-Ranges", "bytes")
            if (start, end) != (0, size):
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            self.wfile.flush()
            at, idle = start, time.monotonic()
            while body and at < end:
                upto = min(end, at + _PIECE) if complete else min(end, _settled(path, at))
                if upto > at:
                    sent = self.connection.sendfile(file, at, upto - at)
                    at += sent
                    idle = time.monotonic()
                    if sent == 0:
                        break
                    continue
                if not path.exists():  # it has its final name now: it is complete
                    complete = True
                elif self.server.store.any_fetching():
                    idle = time.monotonic()
                elif time.monotonic() - idle > _PATIENCE:
                    break
                self.server.used()
                time.sleep(_WAIT)
            self.close_connection = self.close_connection or (body and at < end)

    def _plain(self, status: int, text: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(text)


def _settled(path: Path, at: int) -> int:
    """Return the end of the bytes on the disk from a position on."""
    try:
        ranges = available(path, complete=False)
    except FileNotFoundError:
        return at
    return next((min(end, at + _PIECE) for start, end in ranges if start <= at < end), at)


def _range(header: str | None, size: int) -> tuple[int, int]:
    """Return the range of a header, clipped to the file; the whole file if it is not valid."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", header or "")
    if found is None:
        return 0, size
    start, last = int(found[1]), int(found[2]) if found[2] else size - 1
    return (start, min(last + 1, size)) if start < size and start <= last else (0, size)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, request: PeerServerRequest) -> None:
        super().__init__(("0.0.0.0", request.port), _Handler)
        self.store = Store(request.roots)
        self.token_file = Path(request.token_file)
        self.ended = Event()
        self._idle = request.idle
        self._last = time.monotonic()
        self._lock = Lock()
        Thread(target=self._watch, daemon=True).start()

    def used(self) -> None:
        """Restart the idle time."""
        with self._lock:
            self._last = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""

    def _watch(self) -> None:
        while not self.ended.wait(1.0):
            with self._lock:
                passed = time.monotonic() - self._last
            if passed > self._idle:
                self.stop()

    def stop(self) -> None:
        """Stop the server, from any thread."""
        self.ended.set()
        Thread(target=self.shutdown, daemon=True).start()


def run(request_path: Path, _runtime: Path | None) -> int:
    """Serve until it was idle for long enough, or until a signal."""
    try:
        request = read_peer_server(request_path)
        server = _Server(request)
    except Failed as error:
        log(str(error))
        return FAILED
    except OSError as error:
        log(f"cannot listen on port {request.port}: {error.strerror}")
        return FAILED
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    server.serve_forever(poll_interval=0.2)
    return OK

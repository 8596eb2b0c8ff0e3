"""The reading half of a container registry over this host's images, for its own Docker.

It sends a blob's bytes as they arrive, so that Docker unpacks while the rest is downloaded. Docker
can't sign: it shows a password by Basic authentication, which counts over loopback only, where
systemd holds the port.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import re
import socket
import time
from collections.abc import Callable
from typing import Protocol

from sparkwright.host.fetch import peer_auth, peer_files
from sparkwright.host.fetch.peer_files import Keys, OpenFile, Place, Store
from sparkwright.host.fetch.peer_wire import Broken, Head, Wire

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})", re.ASCII)
_KIND = re.compile(r"application/[\w.+-]{1,100}", re.ASCII)
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_LARGEST_MANIFEST = 4 << 20
_PIECE = 8 << 20
_WAIT = 0.1
#: Seconds that a request waits for a fetch to start or to continue.
_PATIENCE = 10.0
#: Seconds for sending one piece: Docker may be busy with the one before.
_PIECE_TIME = 120.0


class Server(Protocol):
    """What a connection needs of its server."""

    @property
    def store(self) -> Store:
        """Its files."""

    @property
    def keys(self) -> Keys:
        """Its keys."""

    def used(self, connection: socket.socket) -> None:
        """Somebody with a key asks on this connection."""

    def stopped(self) -> bool:
        """Whether the server ends."""


class Docker:
    """One request of this host's Docker."""

    def __init__(self, server: Server, wire: Wire, used: Callable[[], None]) -> None:
        self._server = server
        self._wire = wire
        self._used = used

    def answer(self, method: str, path: str, head: Head) -> bool:
        """Answer. Returns whether the request had the password."""
        if not self._allowed(head.get("authorization")):
            self._say("401 Unauthorized", 'WWW-Authenticate: Basic realm="sparkwright"')
            return False
        self._used()
        names = peer_files.names(path) or []
        digest = _DIGEST.fullmatch(names[-1]) if len(names) > 3 else None
        is_file = digest is not None and names[-2] in ("manifests", "blobs")
        found = self._wait_for(digest[1]) if digest and is_file else None
        if digest is None or found is None:
            self._say("200 OK" if path == "/v2/" else "404 Not Found")
            return True
        place, file = found
        with file:
            kind = _kind(file) if names[-2] == "manifests" else "application/octet-stream"
            self._blob(place, file, digest[1], kind, head, body=method == "GET")
        return True

    def _allowed(self, header: str) -> bool:
        scheme, _, given = header.partition(" ")
        try:
            account = base64.b64decode(given, validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            return False
        run, _, password = account.partition(":")
        key = self._server.keys.of(run) if scheme == "Basic" else None
        if key is None:
            return False
        return hmac.compare_digest(password, peer_auth.docker_password(key))

    def _find(self, digest: str) -> tuple[Place, OpenFile] | None:
        for place in self._server.store.images():
            if found := self._server.store.find(place, (digest,)):
                return place, found
        return None

    def _wait_for(self, digest: str) -> tuple[Place, OpenFile] | None:
        """Wait for a blob to appear; for small ones to be complete, since manifests are parsed."""
        until = time.monotonic() + _PATIENCE
        while not self._server.stopped():
            if found := self._find(digest):
                if found[1].complete or found[1].size > 1 << 20:
                    return found
                os.close(found[1].descriptor)
            if self._server.store.any_fetching():
                until = time.monotonic() + _PATIENCE
            elif time.monotonic() > until:
                return None
            self._used()
            time.sleep(_WAIT)
        return None

    def _blob(
        self, place: Place, file: OpenFile, digest: str, kind: str, head: Head, *, body: bool
    ) -> None:
        start, end = _range(head.get("range"), file.size)
        whole = (start, end) == (0, file.size)
        self._wire.send(
            f"HTTP/1.1 {'200 OK' if whole else '206 Partial Content'}\n"
            f"Content-Type: {kind}\nContent-Length: {end - start}\nAccept-Ranges: bytes\n"
            f"Docker-Content-Digest: sha256:{digest}\n"
            + ("" if whole else f"Content-Range: bytes {start}-{end - 1}/{file.size}\n")
        )
        complete, at, idle = file.complete, start, time.monotonic()
        while body and at < end:
            upto = min(end, at + _PIECE) if complete else min(end, _settled(file, at))
            if upto > at:
                self._wire.send_file(file.descriptor, at, upto, _PIECE_TIME)
                at, idle = upto, time.monotonic()
                self._used()
                continue
            if self._server.stopped():
                raise Broken("stopped")
            if self._has_its_name(place, file, digest):
                complete = True
                continue
            if self._server.store.fetching(place):
                idle = time.monotonic()
            elif time.monotonic() - idle > _PATIENCE:
                raise Broken("the fetch ended")
            self._used()
            time.sleep(_WAIT)

    def _has_its_name(self, place: Place, file: OpenFile, digest: str) -> bool:
        """Whether a part has been verified since; raises Broken if it was replaced or removed."""
        now = self._server.store.find(place, (digest,))
        if now is None:
            raise Broken("the part was removed")
        with now:
            if not os.path.sameopenfile(now.descriptor, file.descriptor):
                raise Broken("the part was replaced")
            return now.complete

    def _say(self, status: str, header: str = "Content-Type: text/plain") -> None:
        self._wire.send(f"HTTP/1.1 {status}\n{header}\nContent-Length: 0\n")


def _kind(file: OpenFile) -> str:
    """The media type that a manifest names."""
    if file.size > _LARGEST_MANIFEST:
        return _MANIFEST
    try:
        named = str(json.loads(os.pread(file.descriptor, file.size, 0)).get("mediaType"))
    except (ValueError, AttributeError):
        return _MANIFEST
    return named if _KIND.fullmatch(named) else _MANIFEST


def _settled(file: OpenFile, at: int) -> int:
    """The end of the bytes on the disk from a position on."""
    ranges = peer_files.available(file)
    return next((min(end, at + _PIECE) for start, end in ranges if start <= at < end), at)


def _range(header: str, size: int) -> tuple[int, int]:
    """The range of a header, clipped to the file; the whole file if it is not valid."""
    found = _RANGE.fullmatch(header)
    if found is None:
        return 0, size
    start, last = int(found[1]), int(found[2]) if found[2] else size - 1
    return (start, min(last + 1, size)) if start < size and start <= last else (0, size)

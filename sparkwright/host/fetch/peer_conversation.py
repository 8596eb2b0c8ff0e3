"""One connection of a peer server: requests are read, judged and answered, one after the other.

`GET /challenge` returns a challenge. `GET /files/models/<org--name>/<commit>/<path>` and
`/files/images/<digest>/<path>`, signed with it, return a range of a file of at most PIECE bytes.
With `?ranges` they list the ranges that are on the disk, whether a fetch runs that will add more
("alive"), and whether the file will not change any more ("ended"). Every answer is signed, its
body's hash included, and brings the next challenge. `/v2/` is for this host's Docker
(peer_registry.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from dataclasses import dataclass

from sparkwright.host.fetch import peer_auth, peer_files, peer_registry
from sparkwright.host.fetch.peer_files import OpenFile
from sparkwright.host.fetch.peer_registry import Server
from sparkwright.host.fetch.peer_wire import Broken, Handshake, Head, Wire

#: Bytes of one answer.
PIECE = 8 << 20
_REQUEST = re.compile(r"(GET|HEAD) (/[\x21-\x7e]{0,4095}) HTTP/1\.[01]")
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{1,15})", re.ASCII)
_BLOCK = 256 << 10
#: Seconds for the head of a request: of somebody unknown, and until a known peer asks again.
UNKNOWN, _KNOWN = 10.0, 60.0
#: Seconds for sending one piece.
_PIECE_TIME = 60.0
_REASONS = {
    200: "OK", 206: "Partial Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    416: "Range Not Satisfiable",
}  # fmt: skip


@dataclass(frozen=True)
class _Signed:
    """A request of a known peer: its key and nonce, and what both sides sign."""

    key: str
    nonce: str
    words: tuple[str, ...]


class Conversation:
    """A connection, from its first request to its end."""

    def __init__(self, server: Server, connection: socket.socket, *, own_docker: bool) -> None:
        self._server = server
        self._connection = connection
        self._own_docker = own_docker
        self._wire = Wire(connection, server.stopped)
        self._challenge = ""
        self._is_known = False

    def run(self) -> None:
        """Answer until somebody ends it. Raises Broken and OSError."""
        while head := self._next():
            found = _REQUEST.fullmatch(head.line)
            has_body = head.get("content-length") not in ("", "0") or head.get("transfer-encoding")
            if found is None or has_body:
                self._say(400, close=True)
                return
            self._answer(found[1], found[2], head)
            if head.get("connection").lower() == "close":
                return

    def _next(self) -> Head | None:
        try:
            return self._wire.head(_KNOWN if self._is_known else UNKNOWN)
        except Handshake:
            # Docker with containerd's image store takes an answer in HTTP, and that alone, for a
            # reason to try without TLS.
            self._say(400, close=True)
            self._wire.end()
            raise

    def _answer(self, method: str, target: str, head: Head) -> None:
        path, _, query = target.partition("?")
        if path.startswith("/v2/"):
            self._registry(method, path, head)
        elif target == "/challenge":
            self._say(200)
        elif (signed := self._signed(method, target, head)) is None:
            self._say(401)
        else:
            self._is_known = True
            self._used()
            self._file(path, query, head, signed)

    def _signed(self, method: str, target: str, head: Head) -> _Signed | None:
        challenge, self._challenge = self._challenge, ""
        claimed = peer_auth.claimed(head.get("authorization"))
        if claimed is None or not challenge or method != "GET":
            return None
        run, peer, number, made = claimed
        server_key = self._server.keys.of(run)
        if server_key is None:
            return None
        key = peer_auth.peer_key(server_key, peer)
        words = (challenge, method, target, head.get("range"))
        if not peer_auth.is_request(key, made, number, *words, peer_auth.EMPTY):
            return None
        return _Signed(key, number, words)

    def _file(self, path: str, query: str, head: Head, signed: _Signed) -> None:
        store = self._server.store
        names = peer_files.names(path)
        found = store.place(names[1:]) if names and names[0] == "files" else None
        if found is None or query not in ("", "ranges"):
            self._say(404, signed=signed)
            return
        place, below = found
        file = store.find(place, below)
        if query == "ranges":
            answer = {
                "ranges": _listed(file),
                "alive": store.fetching(place),
                "ended": store.ended(place),
            }
            self._say(200, json.dumps(answer).encode(), signed=signed)
        elif file is None:
            self._say(404, signed=signed)
        else:
            with file:
                self._piece(file, head.get("range"), signed)

    def _piece(self, file: OpenFile, wanted: str, signed: _Signed) -> None:
        found = _RANGE.fullmatch(wanted)
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, 0)
        if not 0 < end - start <= PIECE or end > file.size:
            self._say(416, signed=signed)
            return
        # Twice over the bytes, which are in memory the second time: the peer keeps nothing that
        # is not signed, and nothing of it is held here.
        hashed, at = hashlib.sha256(), start
        while at < end:
            block = os.pread(file.descriptor, min(_BLOCK, end - at), at)
            if not block:
                raise Broken("the file became shorter")
            hashed.update(block)
            at += len(block)
        content_range = f"bytes {start}-{end - 1}/{file.size}"
        self._head(206, end - start, hashed.hexdigest(), signed, content_range)
        self._wire.send_file(file.descriptor, start, end, _PIECE_TIME)

    def _say(
        self, status: int, body: bytes = b"", *, signed: _Signed | None = None, close: bool = False
    ) -> None:
        hashed = hashlib.sha256(body).hexdigest()
        self._head(status, len(body), hashed, signed, body=body, close=close)

    def _head(
        self,
        status: int,
        length: int,
        hashed: str,
        signed: _Signed | None,
        content_range: str = "",
        *,
        body: bytes = b"",
        close: bool = False,
    ) -> None:
        self._challenge = peer_auth.nonce()
        lines = [f"HTTP/1.1 {status} {_REASONS[status]}", f"Content-Length: {length}"]
        lines.append(f"Sparkwright-Challenge: {self._challenge}")
        if content_range:
            lines.append(f"Content-Range: {content_range}")
        if signed is not None:
            words = (*signed.words, str(status), content_range, hashed)
            made = peer_auth.answer(signed.key, signed.nonce, *words)
            lines.append(f"Sparkwright-Answer: {made}")
        if close:
            lines.append("Connection: close")
        self._wire.send("".join(f"{line}\n" for line in lines), body)

    def _used(self) -> None:
        self._server.used(self._connection)

    def _registry(self, method: str, path: str, head: Head) -> None:
        if not self._own_docker:
            self._say(404)
            return
        docker = peer_registry.Docker(self._server, self._wire, self._used)
        self._is_known = docker.answer(method, path, head) or self._is_known


def _listed(file: OpenFile | None) -> list[tuple[int, int]]:
    if file is None:
        return []
    with file:
        return peer_files.available(file)

"""The asking side of a connection between peers: signed requests, and answers that are proved.

Nothing that an answer says is used before its signature is right. Redirects are not followed, and
no proxy is asked: a peer is where the controller says it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.peer_wire import Broken, Head, Wire
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.host.lib import documents

#: Bytes that are asked for at once, and kept in memory until their signature is seen to be right.
PIECE = 8 << 20
_LARGEST_LIST = 256 << 10
_STATUS = re.compile(r"HTTP/1\.1 (\d{3})(?: [\x20-\x7e]{0,64})?")
_CHALLENGE = re.compile(r"[0-9a-f]{32}")
_CONNECT, _ANSWER, _PIECE_TIME = 5.0, 10.0, 60.0


class Unproven(Exception):
    """Who answers does not know the key: it is not the peer, or somebody in between changes it."""


@dataclass(frozen=True)
class Held:
    """What a peer has of a file.

    Attributes:
        ranges: on its disk, sorted.
        alive: whether a fetch runs that adds more.
        ended: whether nothing will be added.
    """

    ranges: list[tuple[int, int]]
    alive: bool
    ended: bool


@dataclass(frozen=True)
class Identity:
    """As whom this host asks a peer: the run, its own name there, and the key of both; and how the
    peer is verified where it serves by TLS."""

    run: str
    peer: str
    key: str
    tls: TlsIdentity | None = None


def identities(path: str | None) -> dict[str, Identity]:
    """Every peer's identity by its address, from a file of PeerKeys; none without it."""
    keys = documents.record(PeerKeys, Path(path)) if path else None
    if keys is None:
        return {}
    return {
        address: Identity(keys.run, keys.peer, key, keys.tls.get(address))
        for address, key in keys.keys.items()
    }


class PeerClient:
    """A connection to one peer, made when it is needed. Not for several threads."""

    def __init__(self, address: str, identity: Identity, stopped: Callable[[], bool]) -> None:
        self._address = address
        self._identity = identity
        self._stopped = stopped
        self._socket: socket.socket | None = None
        self._wire: Wire | None = None
        self._challenge = ""

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._wire = None
        self._challenge = ""

    def held(self, path: str, size: int) -> Held:
        """Ask what it has of a file. Raises Unproven, Broken."""
        status, _, body = self._get(f"{path}?ranges", "", _LARGEST_LIST, _ANSWER)
        if status != 200:
            raise Broken(f"HTTP {status}")
        try:
            answer = json.loads(bytes(body))
            ranges = [(int(start), int(end)) for start, end in answer["ranges"]]
            held = Held(ranges, bool(answer["alive"]), bool(answer["ended"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Broken("its list of ranges is not valid") from error
        edges = [0, *(edge for one in ranges for edge in one), size]
        if edges != sorted(edges):
            raise Broken("its list of ranges is not valid")
        return held

    def piece(self, path: str, size: int, start: int, end: int) -> memoryview:
        """Get a range of at most PIECE bytes. Raises Unproven, Broken."""
        wanted = f"bytes={start}-{end - 1}"
        status, content_range, body = self._get(path, wanted, end - start, _PIECE_TIME)
        if status != 206 or content_range != f"bytes {start}-{end - 1}/{size}":
            raise Broken(f"HTTP {status} {content_range}".strip())
        if len(body) != end - start:
            raise Broken("another number of bytes")
        return body

    def _get(
        self, target: str, wanted: str, largest: int, seconds: float
    ) -> tuple[int, str, memoryview]:
        try:
            return self._signed(target, wanted, largest, seconds)
        except BaseException:
            self.close()
            raise

    def _signed(
        self, target: str, wanted: str, largest: int, seconds: float
    ) -> tuple[int, str, memoryview]:
        wire = self._connected()
        mine, number = self._identity, peer_auth.nonce()
        words = (self._challenge, "GET", target, wanted)
        shown = peer_auth.authorization(
            mine.key, mine.run, mine.peer, number, *words, peer_auth.EMPTY
        )
        lines = [f"GET {target} HTTP/1.1", f"Host: {urlsplit(self._address).netloc}"]
        lines += [f"Range: {wanted}"] if wanted else []
        wire.send("".join(f"{line}\n" for line in (*lines, f"Authorization: {shown}")))
        status, head = _status(wire.head(seconds))
        if status == 401:
            raise Broken("HTTP 401: it does not know the key of this run")
        body = wire.body(_length(head, largest), seconds)
        content_range = head.get("content-range")
        hashed = hashlib.sha256(body).hexdigest()
        signed = (*words, str(status), content_range, hashed)
        if not peer_auth.is_answer(mine.key, head.get("sparkwright-answer"), number, *signed):
            raise Unproven("its answer is not signed with the key of this run")
        self._challenge = _challenge(head)
        return status, content_range, body

    def _connected(self) -> Wire:
        """The connection, with a challenge for the next request."""
        if self._wire is not None:
            return self._wire
        where = urlsplit(self._address)
        try:
            self._socket = socket.create_connection((where.hostname, where.port), _CONNECT)
        except OSError as error:
            raise Broken(error.strerror or "no connection in time") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._identity.tls is not None:
            self._socket = _verified(self._socket, self._identity.tls, str(where.hostname))
        wire = Wire(self._socket, self._stopped)
        wire.send(f"GET /challenge HTTP/1.1\nHost: {where.netloc}\n")
        status, head = _status(wire.head(_ANSWER))
        if status != 200 or _length(head, 0):
            raise Broken(f"HTTP {status}")
        self._challenge = _challenge(head)
        self._wire = wire
        return wire


def _verified(connection: socket.socket, tls: TlsIdentity, address: str) -> ssl.SSLSocket:
    """The connection under TLS, with who was asked for. Raises Unproven, Broken."""
    context = ssl.create_default_context(cadata=tls.ca)
    connection.settimeout(_ANSWER)
    try:
        return context.wrap_socket(connection, server_hostname=tls.name or address)
    except ssl.CertificateError as error:
        raise Unproven(f"its certificate: {error.verify_message}") from error
    except OSError as error:
        raise Broken(f"no TLS: {error.strerror or error}") from error


def _status(head: Head | None) -> tuple[int, Head]:
    found = _STATUS.fullmatch(head.line) if head is not None else None
    if head is None or found is None:
        raise Broken("the connection was cut" if head is None else "not HTTP")
    return int(found[1]), head


def _length(head: Head, largest: int) -> int:
    text = head.get("content-length")
    if head.get("transfer-encoding") or not (text.isascii() and text.isdigit()):
        raise Broken("an answer without a length")
    if len(text) > 15 or int(text) > largest:
        raise Broken("an answer that is larger than what was asked for")
    return int(text)


def _challenge(head: Head) -> str:
    challenge = head.get("sparkwright-challenge")
    if not _CHALLENGE.fullmatch(challenge):
        raise Broken("an answer without a challenge")
    return challenge

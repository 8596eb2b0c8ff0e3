"""The asking side of a connection between peers: signed requests, and answers that are proved.

Nothing that an answer says is used before its signature is right. Redirects are not followed, and
no proxy is asked: a peer is where the controller says it is.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.host.lib import bounded, documents

#: Bytes that are asked for at once, and kept in memory until their signature is seen to be right.
PIECE = 8 << 20
_LARGEST_LIST = 256 << 10
_CHALLENGE = re.compile(r"[0-9a-f]{32}")
_CONNECT, _ANSWER, _PIECE_TIME = 5.0, 10.0, 60.0


class Broken(Exception):
    """The peer hung up, was too slow, or sent something other than the requested answer."""


class Unproven(Exception):
    """Who answers does not know the key: it is not the peer, or somebody in between changes it."""


@dataclass(frozen=True)
class Held:
    """The bytes of a file that a peer has.

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


class PeerClient(http.client.HTTPConnection):
    """A connection to one peer, made when it is needed. Not for several threads."""

    def __init__(self, address: str, identity: Identity) -> None:
        url = urlsplit(address)
        super().__init__(str(url.hostname), url.port, timeout=_CONNECT)
        self._identity = identity
        self._challenge = ""

    def held(self, path: str, size: int) -> Held:
        """Ask which ranges of a file it has. Raises Unproven, Broken."""
        status, _, body = self._get(f"{path}?ranges", "", _LARGEST_LIST, _ANSWER)
        if status != 200:
            raise Broken(f"HTTP {status}")
        try:
            answer = json.loads(body)
            ranges = [(int(start), int(end)) for start, end in answer["ranges"]]
            held = Held(ranges, bool(answer["alive"]), bool(answer["ended"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Broken("its list of ranges is not valid") from error
        edges = [0, *(edge for pair in ranges for edge in pair), size]
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
        return memoryview(body)

    def connect(self) -> None:
        """Connect, by TLS to a peer that serves by it."""
        super().connect()
        if (tls := self._identity.tls) is None:
            return
        context = ssl.create_default_context(cadata=tls.ca)
        self.sock.settimeout(_ANSWER)
        try:
            self.sock = context.wrap_socket(self.sock, server_hostname=tls.name or self.host)
        except ssl.CertificateError as error:
            raise Unproven(f"its certificate: {error.verify_message}") from error
        except OSError as error:
            raise Broken(f"no TLS: {error.strerror or error}") from error

    def _get(self, target: str, wanted: str, most: int, seconds: float) -> tuple[int, str, bytes]:
        try:
            if self.sock is None:
                self.connect()
                status, headers, _ = self._exchange("/challenge", {}, 0, _ANSWER)
                self._challenged(status, headers)
            return self._signed(target, wanted, most, seconds)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Broken(reason) from error
        except BaseException:
            self.close()
            raise

    def _signed(
        self, target: str, wanted: str, most: int, seconds: float
    ) -> tuple[int, str, bytes]:
        mine, number = self._identity, peer_auth.nonce()
        request = (self._challenge, "GET", target, wanted)
        headers = {"Range": wanted} if wanted else {}
        headers["Authorization"] = peer_auth.authorization(
            mine.key, mine.run, mine.peer, number, *request, peer_auth.EMPTY
        )
        status, answered, body = self._exchange(target, headers, most, seconds)
        content_range = answered.get("Content-Range", "")
        signed = (*request, str(status), content_range, hashlib.sha256(body).hexdigest())
        mac = answered.get("Sparkwright-Answer", "")
        if not peer_auth.is_answer(mine.key, mac, number, *signed):
            raise Unproven("its answer is not signed with the key of this run")
        self._challenged(200, answered)
        return status, content_range, body

    def _exchange(
        self, target: str, headers: dict[str, str], most: int, seconds: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        self.sock.settimeout(seconds)
        self.response_class = bounded.answers(most + 1, seconds)  # type: ignore[assignment]
        self.request("GET", target, headers=headers)
        answer = self.getresponse()
        if answer.status == 401:
            raise Broken("HTTP 401: it does not know the key of this run")
        body: bytes = bounded.read(answer, most)
        if answer.length:
            raise Broken("the connection was cut")
        return answer.status, answer.headers, body

    def _challenged(self, status: int, headers: http.client.HTTPMessage) -> None:
        """Keep the challenge for the next request."""
        self._challenge = headers.get("Sparkwright-Challenge", "")
        if status != 200 or not _CHALLENGE.fullmatch(self._challenge):
            raise Broken("an answer without a challenge")

"""Download files from peers: other hosts of the fleet, which may still be fetching the files.

A peer server (peer_server.py) lists the ranges of a file that it has. The client fetches these
ranges over few connections, and waits for the other ranges while the peer's own fetch is fast
enough. Content that no peer has comes from the source.

Peers prove that they belong to the fleet (peer_auth.py). The client does not trust content from
peers, but hashes it like any other content. Requests are signed, and an answer is used only after
its signature was checked. The client follows no redirects and uses no proxy: the controller names
the peers' addresses.
"""

import hashlib
import http.client
import re
import ssl
import time
import urllib.parse
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock

from sparkwright.host.fetch import peer_auth, progress, ranges
from sparkwright.host.fetch.holes import Part, Ranges
from sparkwright.host.fetch.messages import Failed, check, log
from sparkwright.host.fetch.request import PAGE, FetchRequest, PeerKeys
from sparkwright.host.lib import bounded, disks, documents, records

#: Seconds that a peer has to start its own fetch: all hosts are started at the same time.
_GRACE = 20.0
_POLL = 0.3
_CONNECTIONS = 2  # two connections fill a fast network
_TRIES = 3
#: Seconds over which a peer's rate is measured: the peer may be verifying its files or retrying its
#: own source.
WINDOW = 300.0
#: Bytes per second below which the client drops a peer.
LEAST = 32 << 10
#: Bytes of one request, which stay in memory until their signature was checked.
PIECE = 8 << 20
_LARGEST_LIST = 256 << 10
_CHALLENGE = re.compile(r"[0-9a-f]{32}")
_CONNECT, _ANSWER, _PIECE_TIME = 5.0, 10.0, 60.0


class Broken(Exception):
    """The peer closed the connection, was too slow, or sent an invalid answer."""


class Unproven(Exception):
    """The answer is not signed with the key: another program sent or altered it."""


@records.dataclass(frozen=True)
class Held:
    """Bytes of a file that a peer has.

    Attributes:
        ranges: sorted ranges on the peer's disk.
        alive: whether a running fetch adds more ranges.
        ended: whether the file will not change any more.
    """

    ranges: tuple[tuple[int, int], ...]
    alive: bool
    ended: bool


class PeerClient(http.client.HTTPConnection):
    """A connection to one peer for one file, opened on first use. The object is not thread-safe.

    path: path of the file on the peer.
    """

    def __init__(self, address: str, keys: PeerKeys, path: str, size: int) -> None:
        url = urllib.parse.urlsplit(address)
        super().__init__(str(url.hostname), url.port, timeout=_CONNECT)
        self._keys = keys
        self._key, self._tls = keys.keys[address], keys.tls.get(address)
        self._path, self._size = path, size
        self._challenge = ""

    def held(self) -> Held:
        """Query the peer's ranges of the file. Raises Unproven or Broken."""
        status, _, body = self._get(f"{self._path}?ranges", "", _LARGEST_LIST, _ANSWER)
        if status != 200:
            raise Broken(f"HTTP {status}")
        held = documents.decoded(Held, body.decode(errors="replace"))
        edges = [0, *(edge for pair in held.ranges for edge in pair), self._size] if held else []
        if held is None or edges != sorted(edges):
            raise Broken("its list of ranges is not valid")
        return held

    def piece(self, start: int, end: int) -> memoryview:
        """Get a range of at most PIECE bytes. Raises Unproven or Broken."""
        wanted = f"bytes={start}-{end - 1}"
        status, content_range, body = self._get(self._path, wanted, end - start, _PIECE_TIME)
        if status != 206 or content_range != f"bytes {start}-{end - 1}/{self._size}":
            raise Broken(f"HTTP {status} {content_range}".strip())
        if len(body) != end - start:
            raise Broken("its answer has a wrong number of bytes")
        return memoryview(body)

    def connect(self) -> None:
        """Connect to the peer, over TLS if it serves TLS."""
        super().connect()
        if self._tls is None:
            return
        context = ssl.create_default_context(cadata=self._tls.ca)
        self.sock.settimeout(_ANSWER)
        try:
            self.sock = context.wrap_socket(self.sock, server_hostname=self._tls.name or self.host)
        except ssl.CertificateError as error:
            raise Unproven(f"its certificate: {error.verify_message}") from error
        except OSError as error:
            raise Broken(f"no TLS: {error.strerror or error}") from error

    def _get(self, target: str, wanted: str, most: int, seconds: float) -> tuple[int, str, bytes]:
        try:
            if self.sock is None:
                self.connect()
                self._exchange("/challenge", {}, 0, _ANSWER)
            number = peer_auth.nonce()
            request = (self._challenge, "GET", target, wanted)
            headers = {"Range": wanted} if wanted else {}
            headers["Authorization"] = peer_auth.authorization(
                self._key, self._keys.run, self._keys.peer, number, *request, peer_auth.EMPTY
            )
            status, answered, body = self._exchange(target, headers, most, seconds)
            content_range = answered.get("Content-Range", "")
            signed = (*request, str(status), content_range, hashlib.sha256(body).hexdigest())
            mac = answered.get("Sparkwright-Answer", "")
            if not peer_auth.is_answer(self._key, mac, number, *signed):
                raise Unproven("its answer is not signed with the key of this run")
            return status, content_range, body
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Broken(reason) from error
        except BaseException:
            self.close()
            raise

    def _exchange(
        self, target: str, headers: dict[str, str], most: int, seconds: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        self.sock.settimeout(seconds)
        self.response_class = bounded.answers(most + 1, seconds)  # type: ignore[assignment]
        self.request("GET", target, headers=headers)
        answer = self.getresponse()
        if answer.status == 401:
            raise Broken("HTTP 401: it does not have the key of this run")
        body: bytes = bounded.read(answer, most)
        if answer.length:
            raise Broken("the connection was cut")
        # The challenge for the next request; an unproven answer closes the connection instead.
        self._challenge = answer.headers.get("Sparkwright-Challenge", "")
        if not _CHALLENGE.fullmatch(self._challenge):
            raise Broken("its answer has no challenge")
        return answer.status, answer.headers, body


class Peers:
    """The peers of one request, shared by all of its files."""

    def __init__(self, request: FetchRequest, stop: Event, limit: ranges.Limit) -> None:
        self._request = request
        self._stop = stop
        self._limit = limit
        self._began = time.monotonic()
        self._lock = Lock()
        path = request.peer_token_file
        self._keys = documents.record(PeerKeys, path) if path else None
        #: Working peers, and the bytes that each has sent.
        self.left = dict.fromkeys(request.peers, 0)
        # A limit on this host is not a fault of the peer.
        self._least = LEAST if request.limit is None else min(LEAST, request.limit / 4)
        # With a limit, one request takes a quarter of a second.
        quarter = PIECE if request.limit is None else int(request.limit / 4) // PAGE * PAGE
        self._piece = max(PAGE, min(PIECE, quarter))

    def fill(self, part: Part) -> None:
        """Fetch a file's ranges from peers until no peer has any missing range."""
        kind, depth = ("images", 1) if self._request.source == "registry" else ("models", 2)
        names = (*Path(self._request.destination).parts[-depth:], part.file.path)
        path = urllib.parse.quote(f"/files/{kind}/{'/'.join(names)}")
        for peer in self._request.peers:
            if peer not in self.left or not part.missing():
                continue
            if self._keys is None or peer not in self._keys.keys:
                self._drop(peer, "this run has no key for the peer")
                continue
            with ExitStack() as stack:
                clients = [
                    stack.enter_context(closing(PeerClient(peer, self._keys, path, part.file.size)))
                    for _ in range(_CONNECTIONS)
                ]
                try:
                    self._fill(peer, clients, part)
                except (Broken, Unproven) as error:
                    check(self._stop)
                    self._drop(peer, f"{error}")

    def _fill(self, peer: str, clients: list[PeerClient], part: Part) -> None:
        """Fetch a peer's ranges of a file. Raises Broken or Unproven when the peer fails."""
        failures = 0
        taken: Ranges = []
        since, before = time.monotonic(), self.left.get(peer, 0)
        while peer in self.left and (missing := part.missing()):
            check(self._stop)
            if time.monotonic() - since >= WINDOW:
                # A peer that is too slow must not hold up a fetch.
                if self.left.get(peer, 0) - before < WINDOW * self._least:
                    raise Broken(f"it sent less than {LEAST >> 10} KiB/s over {WINDOW:.0f} s")
                since, before = time.monotonic(), self.left.get(peer, 0)
            try:
                held = clients[0].held()
                wanted = common(missing, held.ranges)
                if again := common(wanted, taken):
                    parent, file = part.path.parent, part.file.path
                    kind = disks.kind(str(parent)) or "an unknown file system"
                    raise Failed("disk_loses", file=file, lost=again[0], parent=parent, kind=kind)
                if wanted:
                    self._take(peer, clients, part, wanted)
                    taken, failures = wanted, 0
                    continue
            except Broken:
                failures += 1
                if failures >= _TRIES:
                    raise
            else:
                late = time.monotonic() - self._began > _GRACE
                # The peer may have other files of this request.
                if held.ended or (late and not held.alive):
                    return
            self._stop.wait(_POLL * (1 + failures))

    def _take(self, peer: str, clients: list[PeerClient], part: Part, wanted: Ranges) -> None:
        """Fetch ranges that the peer has, piece by piece, over several connections."""
        free: SimpleQueue[PeerClient] = SimpleQueue()
        for client in clients:
            free.put(client)
        abort = Event()

        def take(start: int, end: int) -> None:
            if self._stop.is_set() or abort.is_set() or peer not in self.left:
                return
            self._limit.take(end - start, self._stop)
            client = free.get()
            try:
                write(client.piece(start, end), start)
            finally:
                free.put(client)
            with self._lock:
                if peer in self.left:
                    self.left[peer] += end - start

        pieces = [
            (at, min(at + self._piece, end))
            for start, end in wanted
            for at in range(start, end, self._piece)
        ]
        with part.writing(progress.PEERS) as write:
            ranges.side_by_side(take, pieces, len(clients), abort)

    def _drop(self, peer: str, reason: str) -> None:
        with self._lock:
            if self.left.pop(peer, None) is not None:
                log(f"the peer {peer} fails ({reason}); continuing without it")


def common(missing: Ranges, available: Iterable[tuple[int, int]]) -> Ranges:
    """Return the missing ranges that are available, cut at page boundaries except at a range's own
    ends.

    Both arguments are sorted and have no overlaps.
    """
    result = []
    for start, end in missing:
        for first, last in available:
            low = start if first <= start else -(-first // PAGE) * PAGE
            high = end if last >= end else last // PAGE * PAGE
            if high > low:
                result.append((low, high))
    return result

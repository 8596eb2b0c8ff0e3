"""Downloads files from peers: other hosts of the fleet, which may still be fetching them.

A peer server (peer_server.py) lists which ranges of a file it has. Those are fetched over few
connections; the rest is waited for while the peer's own fetch runs, as long as it brings enough.
Peers prove that they belong to the fleet (peer_auth.py), and are not trusted beyond that: what they
send is hashed like everything else. What no peer has comes from the source.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock

from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.peer_client import PIECE, Broken, PeerClient, Unproven, identities
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.ranges import Limit, side_by_side
from sparkwright.host.fetch.request import PAGE, FetchFile, FetchRequest
from sparkwright.host.lib import disks

#: Seconds that a peer has to start its own fetch: all hosts are started at the same time.
_GRACE = 20.0
_POLL = 0.3
_CONNECTIONS = 2  # enough on a fast network
_TRIES = 3
#: Seconds over which it is measured: a peer may verify what it has, or retry its own source.
WINDOW = 300.0
#: Bytes per second: slower than this, no connection is worth waiting for.
LEAST = 32 << 10


class Pace:
    """The bytes of one peer while somebody waits for it, over all threads.

    A peer that is alive and brings nothing must not hold a fetch.

    limit: bytes per second that this host allows itself; None is no limit.
    """

    def __init__(
        self, limit: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._least = WINDOW * (LEAST if limit is None else min(LEAST, limit / 4))
        self._clock = clock
        self._lock = Lock()
        self._waiting = 0
        self._since = 0.0
        self._bytes = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Somebody waits for the peer; time in which nobody does is not measured."""
        with self._lock:
            if not self._waiting:
                self._since, self._bytes = self._clock(), 0
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def brought(self, count: int) -> None:
        """Bytes arrived."""
        with self._lock:
            self._bytes += count

    def too_slow(self) -> bool:
        """Whether it brought too little since the window began."""
        with self._lock:
            if self._clock() - self._since < WINDOW:
                return False
            slow = self._bytes < self._least
            self._since, self._bytes = self._clock(), 0
            return slow


class Peers:
    """The peers of one request, shared by all of its files."""

    def __init__(self, request: FetchRequest, stop: Event, limit: Limit) -> None:
        self._request = request
        self._stop = stop
        self._limit = limit
        self._began = time.monotonic()
        self._lock = Lock()
        self._known = identities(request.peer_token_file)
        self._paces = {peer: Pace(request.limit) for peer in request.peers}
        self._gone: set[str] = set()
        # With a limit, what is asked for at once takes a quarter of a second.
        quarter = PIECE if request.limit is None else int(request.limit / 4) // PAGE * PAGE
        self._piece = max(PAGE, min(PIECE, quarter))

    @property
    def any(self) -> bool:
        """Whether a peer is left."""
        return any(peer not in self._gone for peer in self._request.peers)

    def fill(self, file: FetchFile, part: Path, count: Callable[[int], None]) -> None:
        """Fetch what the peers have of a file. What is missing afterwards, none of them has."""
        for peer in self._request.peers:
            if peer in self._gone or not holes.missing(part, file.size):
                continue
            if peer not in self._known:
                self._drop(peer, "the controller gave no key for it")
                continue
            clients = [PeerClient(peer, self._known[peer]) for _ in range(_CONNECTIONS)]
            try:
                with self._paces[peer].waiting():
                    self._fill(peer, clients, file, part, count)
            finally:
                for client in clients:
                    client.close()

    def _fill(
        self, peer: str, clients: list[PeerClient], file: FetchFile, part: Path,
        count: Callable[[int], None],
    ) -> None:  # fmt: skip
        failures = 0
        taken: list[tuple[int, int]] = []
        path = self._path(file)
        while missing := holes.missing(part, file.size):
            if self._stop.is_set():
                raise Temporary("stopped")
            if self._left(peer):
                return
            try:
                held = clients[0].held(path, file.size)
                wanted = common(missing, held.ranges)
                if again := common(wanted, taken):
                    raise _lost(file, part, again[0])
                if wanted:
                    self._take(peer, clients, path, file.size, part, wanted, count)
                    taken, failures = wanted, 0
                    continue
            except (Broken, Unproven) as error:
                if self._stop.is_set():
                    raise Temporary("stopped") from None
                failures += 1
                if failures >= _TRIES or isinstance(error, Unproven):
                    self._drop(peer, f"{error}")
                    return
            else:
                late = time.monotonic() - self._began > _GRACE
                # It may have other files of this request.
                if held.ended or (late and not held.alive):
                    return
            self._stop.wait(_POLL * (1 + failures))

    def _take(
        self, peer: str, clients: list[PeerClient], path: str, size: int, part: Path,
        wanted: list[tuple[int, int]], count: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Fetch ranges that the peer has, piece by piece, over several connections."""
        free: SimpleQueue[PeerClient] = SimpleQueue()
        for client in clients:
            free.put(client)
        abort = Event()

        def take(start: int, end: int) -> None:
            if self._stop.is_set() or abort.is_set() or self._left(peer):
                return
            self._limit.take(end - start, self._stop)
            client = free.get()
            try:
                writer.write(client.piece(path, size, start, end), start)
            finally:
                free.put(client)
            self._paces[peer].brought(end - start)
            count(end - start)

        pieces = [
            (at, min(at + self._piece, end))
            for start, end in wanted
            for at in range(start, end, self._piece)
        ]
        with holes.writing(part) as writer:
            side_by_side(take, pieces, len(clients), abort)

    def _left(self, peer: str) -> bool:
        """Whether a peer is not asked any more; one that brings too little is left here."""
        if peer not in self._gone and self._paces[peer].too_slow():
            self._drop(peer, f"it brought less than {LEAST >> 10} KiB/s over {WINDOW:.0f} s")
        return peer in self._gone

    def _drop(self, peer: str, reason: str) -> None:
        with self._lock:
            if peer not in self._gone:
                self._gone.add(peer)
                log(f"the peer {peer} fails ({reason}); continuing without it")

    def _path(self, file: FetchFile) -> str:
        kind = "images" if self._request.source == "registry" else "models"
        place = Path(self._request.destination)
        path = f"{place.parent.name}/{place.name}" if kind == "models" else place.name
        return f"/files/{kind}/{path}/{urllib.parse.quote(file.path)}"


def _lost(file: FetchFile, part: Path, lost: tuple[int, int]) -> Failed:
    kind = disks.kind(str(part.parent)) or "an unknown file system"
    start, end = lost
    return Failed("disk_loses", file=file.path, start=start, end=end, parent=part.parent, kind=kind)


def common(
    missing: list[tuple[int, int]], available: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the missing ranges that are available, in whole pages except at a range's own ends.

    Both lists are sorted and without overlaps.
    """
    found = []
    for start, end in missing:
        for first, last in available:
            low, high = max(start, first), min(end, last)
            if low > start:
                low = -(-low // PAGE) * PAGE
            if high < end:
                high = high // PAGE * PAGE
            if high > low:
                found.append((low, high))
    return found

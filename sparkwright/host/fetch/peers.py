"""Downloads files from peers: other hosts of the fleet, which may still be fetching them.

A peer server (peer_server.py) lists which ranges of a file it has. Those are fetched over few
connections; the rest is waited for while the peer's own fetch runs. Peers are not trusted: what
they send is hashed like everything else. What no peer has comes from the source.
"""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sparkwright.host.contracts.fetch import FetchFile, FetchRequest
from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import Failed, NoSpace, Temporary
from sparkwright.host.fetch.hub import Location
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.ranges import Limit, RangeFetch
from sparkwright.host.fetch.request import PAGE

#: Seconds that a peer has to start its own fetch: all hosts are started at the same time.
_GRACE = 20.0
_POLL = 0.3
_CONNECTIONS = 2  # enough on a fast network
_TRIES = 3


class Peers:
    """The peers of one request, shared by all of its files."""

    def __init__(self, request: FetchRequest, stop: Event, limit: Limit) -> None:
        self._request = request
        self._stop = stop
        self._limit = limit
        self._began = time.monotonic()
        self._lock = Lock()
        self._gone: set[str] = set()
        self._token = ""
        if request.peers and request.peer_token_file is not None:
            with contextlib.suppress(OSError):
                self._token = Path(request.peer_token_file).read_text(encoding="utf-8").strip()

    @property
    def any(self) -> bool:
        """Whether a peer is left."""
        return any(peer not in self._gone for peer in self._request.peers)

    def fill(self, file: FetchFile, part: Path, count: Callable[[int], None]) -> None:
        """Fetch what the peers have of a file. What is missing afterwards, none of them has."""
        for peer in self._request.peers:
            if peer not in self._gone and holes.missing(part, file.size):
                self._fill(peer, file, part, count)

    def _fill(self, peer: str, file: FetchFile, part: Path, count: Callable[[int], None]) -> None:
        location = Location(self._url(peer, file), {"Authorization": f"Bearer {self._token}"})
        request = replace(self._request, endpoint=peer, retries=1, stall=15.0)
        source: Any = _PeerSource(location)
        failures = 0
        while missing := holes.missing(part, file.size):
            if self._stop.is_set():
                raise Temporary("stopped")
            if peer in self._gone:
                return
            try:
                available, alive, ended = self._ranges(location)
                wanted = common(missing, available)
                if wanted:
                    fetch = RangeFetch(request, source, file, part, count, self._stop, self._limit)
                    fetch.run(location, wanted, _CONNECTIONS)
                    failures = 0
                    continue
            except NoSpace:
                raise
            except (Failed, OSError, ValueError) as error:
                if self._stop.is_set():
                    raise
                failures += 1
                if failures >= _TRIES:
                    self._drop(peer, f"{error}")
                    return
                alive, ended = True, False
            if ended:
                return
            if not alive and time.monotonic() - self._began > _GRACE:
                # It will get no more of this file, but may have other files of this request.
                return
            self._stop.wait(_POLL * (1 + failures))

    def _drop(self, peer: str, reason: str) -> None:
        with self._lock:
            if peer not in self._gone:
                self._gone.add(peer)
                log(f"the peer {peer} fails ({reason}); continuing without it")

    def _url(self, peer: str, file: FetchFile) -> str:
        kind = "images" if self._request.source == "registry" else "models"
        place = Path(self._request.destination)
        path = f"{place.parent.name}/{place.name}" if kind == "models" else place.name
        return f"{peer}/files/{kind}/{path}/{urllib.parse.quote(file.path)}"

    def _ranges(self, location: Location) -> tuple[list[tuple[int, int]], bool, bool]:
        """Return the peer's ranges, whether its fetch runs, and whether it has ended."""
        query = urllib.request.Request(f"{location.url}?ranges", headers=location.headers)
        with urllib.request.urlopen(query, timeout=5) as answer:
            document = json.load(answer)
        ranges = [(int(start), int(end)) for start, end in document["ranges"]]
        return ranges, bool(document["alive"]), bool(document["ended"])


class _PeerSource:
    """A peer as RangeFetch's source."""

    renews = False

    def __init__(self, location: Location) -> None:
        self._location = location

    def locate(self, file: FetchFile) -> Location:
        """Return the same address again."""
        return self._location

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """Return the plain status: peers explain nothing."""
        return Failed(f"HTTP {status} for {path}")


def common(
    missing: list[tuple[int, int]], available: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the missing ranges that are available, in whole pages except at a range's own end.

    Both lists are sorted and without overlaps.
    """
    found = []
    for start, end in missing:
        for first, last in available:
            low, high = max(start, first), min(end, last)
            if high < end:
                high = high // PAGE * PAGE
            if high > low:
                found.append((low, high))
    return found

"""Takes files from other hosts of the fleet, while these still fetch them.

A peer (share.py) tells which ranges of a file it has. Those are fetched in few large streams;
for the rest one waits as long as the peer's own fetch is alive. Nothing of a peer is trusted: what
came is hashed like everything else. When all peers are gone, the rest comes from the source.
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

from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import Failed, NoSpace, Temporary
from sparkwright.host.fetch.hub import Location
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.ranges import Limit, RangeFetch
from sparkwright.host.fetch.request import PAGE, File, Request

#: Seconds that a peer gets to begin: all hosts are told to start in the same moment.
_GRACE = 20.0
_POLL = 0.3
_CONNECTIONS = 2  # where the line is fast, few streams are
_TRIES = 3


class Peers:
    """The peers of one request, shared by all of its files."""

    def __init__(self, request: Request, stop: Event, limit: Limit) -> None:
        self._request = request
        self._stop = stop
        self._limit = limit
        self._began = time.monotonic()
        self._lock = Lock()
        self._gone: set[str] = set()
        self._token = ""
        if request.peers and request.peer_token_file is not None:
            with contextlib.suppress(OSError):
                self._token = request.peer_token_file.read_text(encoding="utf-8").strip()

    @property
    def any(self) -> bool:
        """Whether a peer is left to be asked."""
        return any(peer not in self._gone for peer in self._request.peers)

    def fill(self, file: File, part: Path, count: Callable[[int], None]) -> None:
        """Fill what the peers have of a file. What is missing afterwards, none of them has."""
        for peer in self._request.peers:
            if peer not in self._gone and holes.missing(part, file.size):
                self._fill(peer, file, part, count)

    def _fill(self, peer: str, file: File, part: Path, count: Callable[[int], None]) -> None:
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
                there, alive, ended = self._ranges(location)
                todo = common(missing, there)
                if todo:
                    fetch = RangeFetch(request, source, file, part, count, self._stop, self._limit)
                    fetch.run(location, todo, _CONNECTIONS)
                    failures = 0
                    continue
            except NoSpace:
                raise
            except (Failed, OSError, ValueError) as error:
                if self._stop.is_set():
                    raise
                failures += 1
                if failures >= _TRIES:
                    self._leave(peer, f"{error}")
                    return
                alive, ended = True, False
            if ended:
                return
            if not alive and time.monotonic() - self._began > _GRACE:
                # It has what it has; others of this fetch may still be there.
                return
            self._stop.wait(_POLL * (1 + failures))

    def _leave(self, peer: str, why: str) -> None:
        with self._lock:
            if peer not in self._gone:
                self._gone.add(peer)
                log(f"{peer} is gone ({why}); going on without it")

    def _url(self, peer: str, file: File) -> str:
        kind = "images" if self._request.source == "registry" else "models"
        place = self._request.destination
        path = f"{place.parent.name}/{place.name}" if kind == "models" else place.name
        return f"{peer}/files/{kind}/{path}/{urllib.parse.quote(file.path)}"

    def _ranges(self, location: Location) -> tuple[list[tuple[int, int]], bool, bool]:
        """Which ranges the peer has, whether it is fetching more, and whether it has ended."""
        question = urllib.request.Request(f"{location.url}?ranges", headers=location.headers)
        with urllib.request.urlopen(question, timeout=5) as answer:
            said = json.load(answer)
        ranges = [(int(start), int(end)) for start, end in said["ranges"]]
        return ranges, bool(said["alive"]), bool(said["ended"])


class _PeerSource:
    """Stands where RangeFetch expects a hub."""

    renews = False

    def __init__(self, location: Location) -> None:
        self._location = location

    def locate(self, file: File) -> Location:
        """The same place again."""
        return self._location

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """A peer explains nothing."""
        return Failed(f"it answers {status} for {path}")


def common(missing: list[tuple[int, int]], there: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges that are missing here and are there, in whole pages (except at a range's own end).

    Both lists are in order and each without overlaps.
    """
    found = []
    for start, end in missing:
        for first, last in there:
            low, high = max(start, first), min(end, last)
            if high < end:
                high = high // PAGE * PAGE
            if high > low:
                found.append((low, high))
    return found

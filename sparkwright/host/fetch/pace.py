"""Whether a peer brings enough: one that is alive and brings nothing must not hold a fetch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

#: Seconds over which it is measured: a peer may verify what it has, or retry its own source.
WINDOW = 300.0
#: Bytes per second: slower than this, no connection is worth waiting for.
LEAST = 32 << 10


class Pace:
    """The bytes of one peer while somebody waits for it, over all threads.

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

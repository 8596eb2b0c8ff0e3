"""How far a fetch is: counters, progress.json for whoever follows it, and log lines."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from sparkwright.host.lib import files
from sparkwright.host.lib.records import encode


@dataclass(frozen=True)
class FetchProgress:
    """progress.json: how far a fetch or a pull is.

    Attributes:
        state: running, verifying, looking for earlier downloads, building, done or failed.
        bytes_done: on the disk, kept ones included.
        bytes_total: 0 while it is not known.
        bytes_kept: what was on the disk before this run.
        bytes_peers: what came from peers.
        rate: bytes per second over the last ten seconds.
        message: the result, once state is done or failed.
        updated: seconds since the epoch.
    """

    state: str = "running"
    bytes_done: int = 0
    bytes_total: int = 0
    bytes_kept: int = 0
    bytes_peers: int = 0
    rate: int = 0
    files_done: int = 0
    files_total: int = 0
    message: str = ""
    pid: int = 0
    updated: float = 0.0


#: Downloader of the bytes that peers sent.
PEERS = "peers"
_WINDOW = 10.0  # seconds that the rate is averaged over


def log(line: str) -> None:
    """Write one plain line to stderr."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Counters of one run, safe for threads, written at most once a second."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "progress.json"
        self._lock = Lock()
        self._write_lock = Lock()
        self._present: dict[str, int] = {}
        self._finished = 0
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)
        self._end = Event()
        self.received_by: Counter[str] = Counter()
        self.now = FetchProgress(pid=os.getpid())

    def start(self) -> None:
        """Write the file now and then once a second."""
        self.write()
        Thread(target=self._tick, daemon=True).start()

    def present(self, path: str, count: int) -> None:
        """Set how many bytes of a file are on the disk."""
        with self._lock:
            self._present[path] = count

    def received(self, path: str, downloader: str, count: int) -> None:
        """Count bytes of a file that arrived by a downloader."""
        with self._lock:
            self._present[path] = self._present.get(path, 0) + count
            self.received_by[downloader] += count

    def finished(self, path: str, size: int) -> None:
        """Count a file that is verified and in place."""
        with self._lock:
            self._present[path] = size
            self._finished += 1

    @property
    def bytes_received(self) -> int:
        """Bytes that arrived in this run."""
        return self.received_by.total()

    @property
    def bytes_done(self) -> int:
        """Bytes on the disk, kept ones included."""
        with self._lock:
            return sum(self._present.values())

    def show(self, **facts: Any) -> None:
        """Set facts of progress.json: state, totals, message."""
        self.now = replace(self.now, **facts)

    def end(self, state: str, message: str) -> None:
        """Write the last state."""
        self._end.set()
        self.show(state=state, message=message)
        self.write()

    def write(self) -> None:
        """Replace progress.json. A failure to write it never ends a fetch."""
        now = time.monotonic()
        with self._write_lock:
            self._samples.append((now, self.bytes_received))
            while now - self._samples[0][0] > _WINDOW:
                self._samples.popleft()
            passed = now - self._samples[0][0]
            gained = self._samples[-1][1] - self._samples[0][1]
            self.show(
                bytes_done=self.bytes_done,
                bytes_peers=self.received_by[PEERS],
                rate=round(gained / passed) if passed else 0,
                files_done=self._finished,
                updated=round(time.time(), 3),
            )
            try:
                files.write(self._path, json.dumps(encode(self.now)) + "\n", 0o644, durable=False)
            except OSError as error:
                log(f"cannot write {self._path}: {error.strerror}")

    def _tick(self) -> None:
        while not self._end.wait(1.0):
            self.write()

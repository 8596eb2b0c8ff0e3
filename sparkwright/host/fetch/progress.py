"""How far a fetch is: counters, progress.json for whoever follows it, and log lines."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock, Thread

from sparkwright.host.lib import files


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


NAME = "progress.json"
_WINDOW = 10.0  # seconds that the rate is averaged over


def log(line: str) -> None:
    """Write one plain line to stderr."""
    print(line, file=sys.stderr, flush=True)


def save(path: Path, progress: FetchProgress) -> None:
    """Replace a progress.json."""
    files.write(path, json.dumps(asdict(progress)) + "\n", 0o644, durable=False)


class Progress:
    """Counters of one run, safe for threads, written at most once a second."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / NAME
        self._lock = Lock()
        self._write_lock = Lock()
        self._present: dict[str, int] = {}
        self._finished = 0
        self._received = 0
        self._from_peers = 0
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)
        self._end = Event()
        self.state = "running"
        self.message = ""
        self.bytes_total = 0
        self.bytes_kept = 0
        self.files_total = 0

    def start(self) -> None:
        """Write the file now and then once a second."""
        self.write()
        Thread(target=self._tick, daemon=True).start()

    def present(self, path: str, count: int) -> None:
        """Set how many bytes of a file are on the disk."""
        with self._lock:
            self._present[path] = count

    def received(self, path: str, count: int, *, peer: bool = False) -> None:
        """Count bytes of a file that arrived, from a peer or from the source."""
        with self._lock:
            self._present[path] = self._present.get(path, 0) + count
            self._received += count
            self._from_peers += count if peer else 0

    def finished(self) -> None:
        """Count a file that is verified and in place."""
        with self._lock:
            self._finished += 1

    @property
    def bytes_received(self) -> int:
        """Bytes that arrived in this run."""
        return self._received

    @property
    def bytes_peers(self) -> int:
        """Those of them that peers sent."""
        return self._from_peers

    @property
    def bytes_done(self) -> int:
        """Bytes on the disk, kept ones included."""
        with self._lock:
            return sum(self._present.values())

    def end(self, state: str, message: str) -> None:
        """Write the last state."""
        self._end.set()
        self.state, self.message = state, message
        self.write()

    def write(self) -> None:
        """Replace progress.json. A failure to write it never ends a fetch."""
        now = time.monotonic()
        with self._write_lock:
            self._samples.append((now, self._received))
            while now - self._samples[0][0] > _WINDOW:
                self._samples.popleft()
            passed = now - self._samples[0][0]
            gained = self._received - self._samples[0][1]
            progress = FetchProgress(
                state=self.state,
                bytes_done=self.bytes_done,
                bytes_total=self.bytes_total,
                bytes_kept=self.bytes_kept,
                bytes_peers=self._from_peers,
                rate=round(gained / passed) if passed else 0,
                files_done=self._finished,
                files_total=self.files_total,
                message=self.message,
                pid=os.getpid(),
                updated=round(time.time(), 3),
            )
            try:
                save(self._path, progress)
            except OSError as error:
                log(f"cannot write {self._path}: {error.strerror}")

    def _tick(self) -> None:
        while not self._end.wait(1.0):
            self.write()

"""Progress of a fetch: counters, progress.json for other programs, and log lines."""

import time
from collections import Counter, deque
from pathlib import Path
from threading import Event, RLock, Thread

from sparkwright.host.fetch.messages import log
from sparkwright.host.lib import files, records


@records.dataclass(frozen=True)
class FetchProgress:
    """progress.json: progress of a fetch or a pull.

    Attributes:
        state: running, verifying, looking for earlier downloads, building, done or failed.
        bytes_done: bytes on the disk, including kept bytes.
        bytes_total: bytes of all files; 0 while unknown.
        bytes_peers: bytes received from peers.
        rate: bytes per second over the last ten seconds.
        source: origin of most bytes, as text: ``the internet``, ``a neighbour``, ``the bundle``, or
            ``the disk`` if no bytes were received; empty at first.
        message: the result, once the state is done or failed.
    """

    state: str = "running"
    bytes_done: int = 0
    bytes_total: int = 0
    bytes_peers: int = 0
    rate: int = 0
    source: str = ""
    message: str = ""


#: Name of peers as a downloader.
PEERS = "peers"
_WINDOW = 10.0  # seconds over which the rate is averaged


class Progress:
    """Thread-safe counters of one run, written at most once a second."""

    def __init__(self, state_dir: Path, peers: str = "a neighbour") -> None:
        #: Name of peers in ``source``.
        self._peers = peers
        self.state, self.message, self.bytes_total = "running", "", 0
        self.received_by: Counter[str] = Counter()
        self._path = state_dir / "progress.json"
        self._lock = RLock()
        self._present: dict[str, int] = {}
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)
        self._end = Event()

    def start(self) -> None:
        """Write the file at once, and then every second."""
        self.write()
        Thread(target=self._tick, daemon=True).start()

    def present(self, path: str, count: int) -> None:
        """Set the number of a file's bytes that are on the disk."""
        with self._lock:
            self._present[path] = count

    def received(self, path: str, downloader: str, count: int) -> None:
        """Count the bytes of a file that a downloader received."""
        with self._lock:
            self._present[path] = self._present.get(path, 0) + count
            self.received_by[downloader] += count

    @property
    def bytes_done(self) -> int:
        """Return the bytes on the disk, including kept bytes."""
        with self._lock:
            return sum(self._present.values())

    def end(self, state: str, message: str) -> None:
        """Write the final state."""
        self._end.set()
        self.state, self.message = state, message
        self.write()

    def write(self) -> None:
        """Replace progress.json. A failure to write the file never ends a fetch."""
        now = time.monotonic()
        with self._lock:
            received, source = self.received_by.total(), "the disk" if self.bytes_done else ""
            if received:
                by_peers = 2 * self.received_by[PEERS] > received
                source = self._peers if by_peers else "the internet"
            self._samples.append((now, received))
            while now - self._samples[0][0] > _WINDOW:
                self._samples.popleft()
            passed = now - self._samples[0][0]
            gained = self._samples[-1][1] - self._samples[0][1]
            progress = FetchProgress(
                self.state,
                bytes_done=self.bytes_done,
                bytes_total=self.bytes_total,
                bytes_peers=self.received_by[PEERS],
                rate=round(gained / passed) if passed else 0,
                source=source,
                message=self.message,
            )
            try:
                files.write_record(self._path, progress, durable=False)
            except OSError as error:
                log(f"cannot write {self._path}: {error.strerror}")

    def _tick(self) -> None:
        while not self._end.wait(1.0):
            self.write()

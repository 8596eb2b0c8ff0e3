"""Missing ranges of a part file, read from its holes, or from a map beside it.

A part has its full length from the start; ranges are written into it in any order. After kill -9
the file system still has the written ranges; all other ranges are holes. Every writer ends its
writes on a PAGE or at the end of the file, so the holes are exact. If a power cut left zeros, the
part looks complete and its hash does not match.

Some file systems do not distinguish holes from data (NFS before 4.2, SMB, exFAT, sshfs), and ZFS
turns zeros into holes, and syncs at every query for holes. On these file systems a part has a map,
with one byte for each page: 1 once the page is written.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from io import FileIO
from pathlib import Path

from sparkwright.host.fetch.messages import Failed
from sparkwright.host.fetch.request import PAGE, FetchFile
from sparkwright.host.lib import disks, records

#: Ranges [start, end) of a file, sorted and without overlaps.
Ranges = list[tuple[int, int]]


_TRIAL = 1 << 20  # bytes: a file system's blocks can be this large
_WRITTEN = b"\1"


def reported(directory: Path) -> bool:
    """Return whether a directory's file system reports holes exactly, by writing a test file."""
    if disks.kind(str(directory)) == "zfs":
        return False
    with tempfile.TemporaryFile(dir=directory) as file:
        descriptor = file.fileno()
        try:
            os.ftruncate(descriptor, 3 * _TRIAL)
            os.pwrite(descriptor, bytes(_TRIAL), _TRIAL)
            os.fsync(descriptor)
            return of(descriptor, 3 * _TRIAL) == [(0, _TRIAL), (2 * _TRIAL, 3 * _TRIAL)]
        except OSError as error:
            # The caller reports a full disk when it measures free space. Some file systems outside
            # the kernel can't report holes.
            return error.errno in {errno.ENOSPC, errno.EDQUOT}


@records.dataclass(frozen=True)
class Part:
    """A file of a request during its download.

    Attributes:
        received: function that counts the bytes that each downloader has written.
    """

    path: Path
    file: FetchFile
    received: Callable[[str, int], None]

    @property
    def map(self) -> Path:
        """Return the path of the part's map, whether or not it exists."""
        return self.path.with_name(f"{self.path.name}.map")

    def prepare(self, *, mapped: bool) -> None:
        """Make the part a regular file of full length; any other file at the path is replaced.

        mapped: whether the part needs a map. A part without its map starts again from zero.
        """
        size, pages = self.file.size, -(-self.file.size // PAGE)
        if _size(self.path) == size and _size(self.map) == (pages if mapped else None):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for path, length in ((self.map, pages if mapped else None), (self.path, size)):
            path.unlink(missing_ok=True)
            if length is not None:
                with _open(path, os.O_CREAT | os.O_EXCL) as file:
                    file.truncate(length)

    def missing(self) -> Ranges:
        """Return the missing ranges."""
        if self.map.exists():
            return unmarked(self.map.read_bytes(), self.file.size)
        with self.path.open("rb", buffering=0) as file:
            return of(file.fileno(), self.file.size)

    @contextmanager
    def writing(self, downloader: str) -> Iterator[Callable[[memoryview, int], None]]:
        """Yield a function that writes bytes at a position, and marks and counts them.

        The function raises Failed, and is thread-safe.
        """
        with (
            _open(self.path) as part,
            _open(self.map) if self.map.exists() else nullcontext() as pages,
        ):

            def write(data: memoryview, start: int) -> None:
                written, end = 0, start + len(data)
                first = -(-start // PAGE)
                last = -(-end // PAGE) if end == self.file.size else end // PAGE
                try:
                    while written < len(data):
                        written += os.pwrite(part.fileno(), data[written:], start + written)
                    if pages is not None and last > first:
                        os.pwrite(pages.fileno(), _WRITTEN * (last - first), first)
                except OSError as error:
                    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                        raise Failed("disk_full", parent=self.path.parent) from error
                    raise Failed("disk_fault", path=self.path, reason=error.strerror) from error
                self.received(downloader, len(data))

            yield write


def _open(path: Path, flags: int = 0) -> FileIO:
    flags |= os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)


def _size(path: Path) -> int | None:
    """Return the size of a regular file; -1 for any other file, None if the path does not exist."""
    if not os.path.lexists(path):
        return None
    status = path.lstat()
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def unmarked(pages: bytes, size: int) -> Ranges:
    """Return the missing ranges of a part, read from its map."""
    ranges, end = [], 0
    while end < len(pages) and (start := pages.find(b"\0", end)) >= 0:
        end = pages.find(_WRITTEN, start)
        end = len(pages) if end < 0 else end
        ranges.append((start * PAGE, min(end * PAGE, size)))
    return ranges


def of(descriptor: int, size: int) -> Ranges:
    """Return the missing ranges of an open part, read from its holes."""
    ranges = []
    position = 0
    while position < size:
        try:
            data = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            data = size
        if data > position:
            ranges.append((position, min(data, size)))
        if data >= size:
            break
        position = os.lseek(descriptor, data, os.SEEK_HOLE)
    return ranges


def total(ranges: Ranges) -> int:
    """Return the number of bytes in a list of ranges."""
    return sum(end - start for start, end in ranges)

"""Missing ranges of a part file, read from its holes, or from a map beside it.

A part has its full length from the start; ranges are written into it in any order. After kill -9
the file system itself knows what was written: everything else is a hole. Every writer ends its
writes on a PAGE or at the end of the file, so the holes are exact. If a power cut left zeros, the
part looks complete and its hash does not match.

Some file systems do not tell holes from data (NFS before 4.2, SMB, exFAT, sshfs), and ZFS makes
holes of zeros and syncs whenever it is asked. There a part has a map: a byte for each page, 1 once
the page is written.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.request import PAGE
from sparkwright.host.lib import disks

_TRIAL = 1 << 20  # bytes; blocks of a file system can be as large
_WRITTEN = b"\1"


def reported(directory: Path) -> bool:
    """Whether the file system of a directory reports holes exactly; found by making some."""
    if disks.kind(str(directory)) == "zfs":
        return False
    with tempfile.TemporaryFile(dir=directory) as file:
        descriptor = file.fileno()
        try:
            os.ftruncate(descriptor, 3 * _TRIAL)
            os.pwrite(descriptor, bytes(_TRIAL), _TRIAL)
            os.fsync(descriptor)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                return True  # that the disk is full is said where the rest is measured
            raise
        try:
            return of(descriptor, 3 * _TRIAL) == [(0, _TRIAL), (2 * _TRIAL, 3 * _TRIAL)]
        except OSError:  # some that are no part of the kernel know no such question
            return False


def map_of(part: Path) -> Path:
    """Return where a part's map is, if it has one."""
    return part.with_name(f"{part.name}.map")


def prepare(part: Path, size: int, *, mapped: bool = False) -> None:
    """Make sure that a part is a regular file of full length; another file is replaced.

    mapped: whether it needs a map. A part whose map is missing is begun anew.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.is_symlink():
        part.unlink()
    beside, pages = map_of(part), -(-size // PAGE)
    fits = _size(part) == size and _size(beside) == (pages if mapped else None)
    if not fits:
        beside.unlink(missing_ok=True)
    _resize(part, size, anew=mapped and not fits)
    if mapped:
        _resize(beside, pages)


def _size(path: Path) -> int | None:
    return path.lstat().st_size if os.path.lexists(path) else None


def _resize(path: Path, size: int, *, anew: bool = False) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if anew or os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, 0)
            os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)


def allocated(part: Path) -> int:
    """Return the bytes that a part takes on the disk, whether they are written or not."""
    return part.lstat().st_blocks * 512


def missing(part: Path, size: int) -> list[tuple[int, int]]:
    """Return the missing ranges [start, end) of a part of full length, sorted."""
    if (beside := map_of(part)).exists():
        return unmarked(beside.read_bytes(), size)
    descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return of(descriptor, size)
    finally:
        os.close(descriptor)


class Writer:
    """Writes into a part, and marks in its map what is written; see ``writing``."""

    def __init__(self, path: Path, part: int, beside: int | None, size: int) -> None:
        self._path = path
        self._part = part
        self._map = beside
        self._size = size

    def write(self, data: memoryview, start: int) -> None:
        """Write bytes at a position. Raises Failed. Safe for threads."""
        try:
            self._write(data, start)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise Failed("disk_full", parent=self._path.parent) from error
            raise Failed("disk_fault", path=self._path, reason=error.strerror) from error

    def _write(self, data: memoryview, start: int) -> None:
        written = 0
        while written < len(data):
            written += os.pwrite(self._part, data[written:], start + written)
        if self._map is None:
            return
        end = start + len(data)
        first, last = -(-start // PAGE), -(-end // PAGE) if end == self._size else end // PAGE
        if last > first:
            os.pwrite(self._map, _WRITTEN * (last - first), first)


@contextmanager
def writing(part: Path) -> Iterator[Writer]:
    """Open a part for writing."""
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor, beside = os.open(part, flags), None
    try:
        if map_of(part).exists():
            beside = os.open(map_of(part), flags)
        yield Writer(part, descriptor, beside, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
        if beside is not None:
            os.close(beside)


def unmarked(pages: bytes, size: int) -> list[tuple[int, int]]:
    """Return the missing ranges of a part by its map."""
    ranges, end = [], 0
    while end < len(pages) and (start := pages.find(b"\0", end)) >= 0:
        end = pages.find(_WRITTEN, start)
        end = len(pages) if end < 0 else end
        ranges.append((start * PAGE, min(end * PAGE, size)))
    return ranges


def of(descriptor: int, size: int) -> list[tuple[int, int]]:
    """Return the same of an open part."""
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


def total(ranges: list[tuple[int, int]]) -> int:
    """Return the bytes in a list of ranges."""
    return sum(end - start for start, end in ranges)

"""Missing ranges of a part file, read from its holes.

A part has its full length from the start; ranges are written into it in any order. After kill -9
the file system itself knows what was written: everything else is a hole. Every writer ends its
writes on a PAGE or at the end of the file, so the holes are exact. If a file system keeps no holes,
or a power cut left zeros, the part looks complete and its hash does not match.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def prepare(part: Path, size: int) -> None:
    """Make sure that a part is a regular file of full length; another file is replaced."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.is_symlink():
        part.unlink()
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, 0)
            os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)


def missing(part: Path, size: int) -> list[tuple[int, int]]:
    """Return the missing ranges [start, end) of a part of full length, sorted."""
    descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return of(descriptor, size)
    finally:
        os.close(descriptor)


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

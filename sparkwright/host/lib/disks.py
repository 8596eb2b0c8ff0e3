"""File systems, by paths that need not exist yet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sparkwright.host.lib import documents


@dataclass(frozen=True)
class FileSystem:
    """A file system by a path on it, in bytes."""

    path: str
    free: int
    total: int


def nearest(path: str) -> Path:
    """The path itself, or its nearest parent that exists: where its files will lie."""
    place = Path(path)
    while not place.exists():
        place = place.parent
    return place


def obstacle(path: str) -> str | None:
    """What is in the way of a directory: a file, or a link that leads nowhere. None for nothing."""
    for place in (Path(path), *Path(path).parents):
        if os.path.lexists(place):
            return None if place.is_dir() else str(place)
    return None


def kind(path: str) -> str:
    """The type of the file system below a path ("ext4", "nfs4"), empty where it can't be told."""
    place, found, longest = nearest(path).resolve(), "", -1
    for line in (documents.text("/proc/self/mountinfo") or "").splitlines():
        mount, _, rest = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda one: chr(int(one[1], 8)), mount.split()[4])
        # Of two at one point, the later lies above.
        if (place == Path(point) or Path(point) in place.parents) and len(point) >= longest:
            found, longest = rest.split()[0], len(point)
    return found


def file_systems(paths: Iterable[str]) -> list[FileSystem]:
    """The file systems below these paths, each once."""
    found: dict[int, FileSystem] = {}
    for path in paths:
        place = nearest(path)
        stat = os.statvfs(place)
        free, total = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
        found.setdefault(place.stat().st_dev, FileSystem(path, free, total))
    return list(found.values())

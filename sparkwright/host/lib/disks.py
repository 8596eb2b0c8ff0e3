"""File systems, by paths that need not exist yet."""

from __future__ import annotations

import os
from pathlib import Path

from sparkwright.host.contracts.disks import FileSystem

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Iterable


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


def file_systems(paths: Iterable[str]) -> list[FileSystem]:
    """The file systems below these paths, each once."""
    found: dict[int, FileSystem] = {}
    for path in paths:
        place = nearest(path)
        stat = os.statvfs(place)
        free, total = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
        found.setdefault(place.stat().st_dev, FileSystem(path, free, total))
    return list(found.values())

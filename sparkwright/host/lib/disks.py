"""File systems of paths, which may not exist yet."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from sparkwright.host.lib import documents, records


@records.dataclass(frozen=True)
class Disk:
    """A file system, found by a path on it. Sizes are in bytes; ``exists`` is False if the path
    does not exist.

    Attributes:
        obstacle: the file at the path or above it where a directory should be.
    """

    device: int
    free: int
    exists: bool
    read_only: bool
    obstacle: str | None = None
    total: int = 0


def nearest(path: str) -> Path:
    """Return the path or its nearest existing parent, whose file system will hold the path."""
    existing = Path(path)
    while not existing.exists():
        existing = existing.parent
    return existing


def obstacle(path: str) -> str | None:
    """Return the file or dangling link that prevents making a directory; None for a free path."""
    for parent in (Path(path), *Path(path).parents):
        if os.path.lexists(parent):
            return None if parent.is_dir() else str(parent)
    return None


def kind(path: str) -> str:
    """Return the type of the file system below a path ("ext4", "nfs4"); empty if unknown."""
    existing, fstype, longest = nearest(path).resolve(), "", -1
    for line in (documents.text("/proc/self/mountinfo") or "").splitlines():
        mount, _, rest = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda item: chr(int(item[1], 8)), mount.split()[4])
        # Of two mounts at one point, the later mount hides the earlier mount.
        if (existing == Path(point) or Path(point) in existing.parents) and len(point) >= longest:
            fstype, longest = rest.split()[0], len(point)
    return fstype


def disk(path: str) -> Disk:
    """Return the file system below a path that may not exist yet."""
    existing = nearest(path)
    stat = os.statvfs(existing)
    return Disk(
        device=existing.stat().st_dev,
        free=stat.f_bavail * stat.f_frsize,
        exists=str(existing) == path,
        read_only=bool(stat.f_flag & os.ST_RDONLY),
        obstacle=obstacle(path),
        total=stat.f_blocks * stat.f_frsize,
    )


def file_systems(paths: Iterable[str]) -> dict[str, Disk]:
    """Return the file systems below these paths, by path."""
    systems: dict[int, tuple[str, Disk]] = {}
    for path in paths:
        system = disk(path)
        systems.setdefault(system.device, (path, system))
    return dict(systems.values())

"""Writing files on a host so that a power cut leaves the old one or the new one, whole."""

from __future__ import annotations

import os
from pathlib import Path


def write(place: Path, text: str, mode: int, *, parents: int = 0o755, durable: bool = True) -> bool:
    """Write a file that was never readable by others meanwhile. Returns whether it changed.

    Args:
        parents: mode of a directory that is made for it.
        durable: whether it is on the disk when this returns; what is written every minute, or
            lies in memory, has no need to wait for that.
    """
    if place.is_file() and place.read_text() == text and place.stat().st_mode & 0o777 == mode:
        return False
    place.parent.mkdir(mode=parents, parents=True, exist_ok=True)
    temporary = _beside(place)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(place)
    if durable:
        _sync(place.parent)
    return True


def point(link: Path, target: str) -> None:
    """Switch a link in one step, on the disk before anything else happens."""
    temporary = _beside(link)
    temporary.symlink_to(target)
    temporary.replace(link)
    _sync(link.parent)


def target(link: Path) -> str | None:
    """The name of what a link leads to; None when it is no link."""
    return link.readlink().name if link.is_symlink() else None


def _beside(place: Path) -> Path:
    """A name for what will take the place of a file; nothing lies there."""
    temporary = place.with_name(f".{place.name}.new")
    temporary.unlink(missing_ok=True)
    return temporary


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""File systems of a host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileSystem:
    """A file system by a path on it, in bytes."""

    path: str
    free: int
    total: int

"""Directories with mode and owner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Directory:
    """A directory as it must be, or is.

    Attributes:
        mode: permission bits, e.g. 0o755.
        uid: number of its owner and group.
    """

    path: str
    mode: int = 0o755
    uid: int = 0


@dataclass(frozen=True)
class DirectoriesRequest:
    """Directories to make or to put right, parents first."""

    directories: tuple[Directory, ...]


@dataclass(frozen=True)
class ExposedPath:
    """A path that another user than root may change; ``why`` completes "PATH ...".

    Attributes:
        path: the directory, link or file itself, maybe far above what was asked for.
    """

    path: str
    why: str

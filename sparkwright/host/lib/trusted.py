"""Paths that root may trust: only root can change them, all the way down.

A user who may write to a directory decides where its names lead. So root writes, and believes what
it reads, only below directories of its own, which are opened one by one, by descriptor, without
following another user's link. A process that is not root has nothing that others lack: for it
every path is as good.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class ExposedPath:
    """A path that another user than root may change; ``why`` completes "PATH ...".

    Attributes:
        path: the directory, link or file itself, maybe far above what was asked for.
    """

    path: str
    why: str


_LINKS = 40  # as many as the kernel follows
_HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Exposed(PermissionError):
    """Another user may change this path; ``filename`` is where, ``strerror`` why."""


def why(status: os.stat_result, *, shared: bool = False) -> str | None:
    """Why something is not root's alone; None if it is, or this process is not root.

    shared: whether a directory like /tmp will do, in which everybody makes names of their own but
        nobody changes other users' names.
    """
    if os.geteuid() != 0:
        return None
    if status.st_uid != 0:
        return f"belongs to user {_name(status.st_uid)}"
    if not status.st_mode & 0o022 or stat.S_ISLNK(status.st_mode):
        return None
    if shared and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    return f"can be written to by others (mode {stat.S_IMODE(status.st_mode):04o})"


@contextmanager
def directory(path: str | Path, *, make: int | None = None, own: bool = True) -> Iterator[int]:
    """A descriptor of a directory that is reached through root's alone.

    Args:
        make: mode of the directory where it has to be made; its parents get 0755.
        own: whether the directory itself must be root's alone, too.

    Raises:
        Exposed: naming what another user may change.
        OSError: it can't be opened or made, or is no directory.
    """
    handle = _walk(str(path), make, own)
    try:
        yield handle
    finally:
        os.close(handle)


def exposed(path: str | Path) -> ExposedPath | None:
    """Part of a path, or the path itself, that another user may change. None without such a part.

    Missing directories will be made by root.
    """
    parent, _, name = str(path).rstrip("/").rpartition("/")
    try:
        with directory(parent or "/") as folder:
            result = os.lstat(name or ".", dir_fd=folder)
            if stat.S_ISDIR(result.st_mode) or stat.S_ISLNK(result.st_mode):
                with directory(path):
                    return None
    except Exposed as error:
        return ExposedPath(str(error.filename), str(error.strerror))
    except OSError:
        return None
    reason = why(result)
    return None if reason is None else ExposedPath(str(path), reason)


def take_over(path: str | Path, make: int = 0o755) -> None:
    """Make a directory, or have an existing one root's alone. Its parents must be so already."""
    with directory(path, make=make, own=False) as handle:
        if why(os.fstat(handle)) is not None:
            # Without set-gid, too: a sandboxed job may not even keep it.
            _set(handle, 0, stat.S_IMODE(os.fstat(handle).st_mode) & 0o755)


def set_up(path: str | Path, uid: int, mode: int) -> None:
    """Make a directory, or give an existing one this owner, group and mode."""
    with directory(path, make=mode, own=False) as handle:
        _set(handle, uid, mode)


def give(handle: int, mode: int, ids: tuple[int, int] | None = None) -> None:
    """Give an open file or directory a mode, and an owner and group.

    exFAT, FAT and SMB have the owner and mode of their mount for all files: they will do if only
        root can write.

    Raises:
        PermissionError: where they do not.
    """
    try:
        if ids is not None:
            os.fchown(handle, *ids)
        os.fchmod(handle, mode)
    except PermissionError:
        result = os.fstat(handle)
        other = ids is not None and (result.st_uid, result.st_gid) != ids
        if other or result.st_mode & ~mode & 0o066:
            raise


def _set(handle: int, uid: int, mode: int) -> None:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
    try:
        give(opened, mode, (uid, uid))
    finally:
        os.close(opened)


def _walk(path: str, make: int | None, own: bool) -> int:
    """Open a directory from the root on, name by name."""
    at, location, links = os.open("/", _HANDLE | os.O_DIRECTORY), "/", 0
    left = _names(path if path.startswith("/") else f"{os.getcwd()}/{path}")  # noqa: PTH109
    try:
        while True:
            reason = why(os.fstat(at), shared=bool(left)) if own or left else None
            if reason:
                raise Exposed(1, reason, location)
            if not left:
                return at
            name = left.pop()
            location = f"{location.rstrip('/')}/{name}"
            below = _open(at, name, None if make is None else (0o755 if left else make))
            result = os.fstat(below)
            if stat.S_ISLNK(result.st_mode):
                target, reason, links = os.readlink("", dir_fd=below), why(result), links + 1
                os.close(below)
                if reason or links > _LINKS:
                    raise Exposed(1, f"is a link that {reason or 'leads in circles'}", location)
                left += _names(target)
                location = location.rpartition("/")[0] or "/"
                if target.startswith("/"):
                    below, location = os.open("/", _HANDLE | os.O_DIRECTORY), "/"
                else:
                    continue
            elif not stat.S_ISDIR(result.st_mode):
                os.close(below)
                raise NotADirectoryError(20, "is not a directory", location)
            os.close(at)
            at = below
    except BaseException:
        os.close(at)
        raise


def _open(at: int, name: str, make: int | None) -> int:
    try:
        return os.open(name, _HANDLE, dir_fd=at)
    except FileNotFoundError:
        if make is None:
            raise
    with suppress(FileExistsError):  # made just now by another: it is judged like any
        os.mkdir(name, make, dir_fd=at)
    return os.open(name, _HANDLE, dir_fd=at)


def _names(path: str) -> list[str]:
    """A path's names, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

"""Paths that root may trust, since only root can change any part of them.

A user who may write to a directory decides where its names lead. Root therefore reads and writes
only below its own directories, which are opened one by one, by descriptor, without following
another user's link. A process without root's rights accepts every path.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class ExposedPath:
    """A path that a user other than root may change; ``why`` completes "PATH ...".

    Attributes:
        path: the exposed directory, link or file, which may be far above the requested path.
    """

    path: str
    why: str


_LINKS = 40  # as many links as the kernel follows
_HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Exposed(PermissionError):
    """Another user may change this path; ``filename`` is the part, ``strerror`` the reason."""


def why(status: os.stat_result, *, shared: bool = False) -> str | None:
    """Return why users other than root may change a file or directory; None if only root may, or if
    this process is not root.

    shared: whether to accept a directory like /tmp, where users can only change their own names.
    """
    if os.geteuid() != 0:
        return None
    if status.st_uid != 0:
        return f"belongs to user {_name(status.st_uid)}"
    if not status.st_mode & 0o022 or stat.S_ISLNK(status.st_mode):
        return None
    if shared and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    return f"is writable by users other than root (mode {stat.S_IMODE(status.st_mode):04o})"


@contextmanager
def directory(path: str | Path, *, make: int | None = None, own: bool = True) -> Iterator[int]:
    """Yield a descriptor of a directory whose path only root can change.

    Args:
        make: mode of a directory that must be made; its parents get 0755.
        own: whether only root may change the directory itself.

    Raises:
        Exposed: another user may change a part of the path.
        OSError: the directory can't be opened or made, or is not a directory.
    """
    handle = _walk(str(path), make, own)
    try:
        yield handle
    finally:
        os.close(handle)


def exposed(path: str | Path) -> ExposedPath | None:
    """Return the part of a path that another user may change; None without such a part.

    Missing directories count as root's, since root will make them.
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
    """Make a directory, or let only root change an existing directory. Only root may be able to
    change the directory's parents.
    """
    with directory(path, make=make, own=False) as handle:
        if why(os.fstat(handle)) is not None:
            # Remove set-gid, since a sandboxed job may not be allowed to keep it.
            _set(handle, 0, stat.S_IMODE(os.fstat(handle).st_mode) & 0o755)


def set_up(path: str | Path, uid: int, mode: int) -> None:
    """Make a directory, or set the owner, group and mode of an existing directory."""
    with directory(path, make=mode, own=False) as handle:
        _set(handle, uid, mode)


def give(handle: int, mode: int, ids: tuple[int, int] | None = None) -> None:
    """Set the mode, owner and group of an open file or directory.

    On exFAT, FAT and SMB all files have the mount's owner and mode, which is enough if only root
    can write.

    Raises:
        PermissionError: other users could write to the file or directory.
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
    """Open a directory name by name, starting at the root."""
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
    with suppress(FileExistsError):  # a directory that another process made is checked, too
        os.mkdir(name, make, dir_fd=at)
    return os.open(name, _HANDLE, dir_fd=at)


def _names(path: str) -> list[str]:
    """Return the names in a path, the last name first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)

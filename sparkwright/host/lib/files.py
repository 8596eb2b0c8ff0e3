"""Write files on a host so that a power cut leaves either the complete old or the complete new
file.

Every name is opened relative to its directory's descriptor; only root may be able to change the
directory (trusted.py), and links are not followed. Therefore, another user can't make root write or
read elsewhere.
"""

import contextlib
import json
import os
import stat
from pathlib import Path

from sparkwright.host.lib import documents, records, trusted
from sparkwright.host.lib.annotations import Any, T

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write(path: Path, text: str, mode: int, *, parents: int = 0o755, durable: bool = True) -> bool:
    """Write a file that other users can't read at any moment. Returns whether the file changed.

    Args:
        parents: mode of a directory that is made for the file.
        durable: whether to sync the file before returning; a file that is written every minute or
            is in memory does not need the sync.

    Raises:
        trusted.Exposed: another user may change a directory above the file.
    """
    data = text.encode("utf-8", "surrogateescape")  # bytes that are not UTF-8
    with trusted.directory(path.parent, make=parents) as folder:
        if (existing := _opened(path.name, folder)) is not None:
            with os.fdopen(existing, "rb") as file:
                same = stat.S_IMODE(os.fstat(existing).st_mode) == mode
                if same and file.read() == data:
                    return False
        temporary = _free(f".{path.name}.new", folder)
        with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
            trusted.give(file.fileno(), mode)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        if durable:
            _sync(folder)
    return True


def write_record(path: Path, record: object, mode: int = 0o644, **how: Any) -> bool:
    """Write a record as JSON; see ``write``. Returns whether the file changed."""
    return write(path, json.dumps(records.encode(record)) + "\n", mode, **how)


def append(path: Path, text: str, mode: int = 0o644) -> None:
    """Append to a file and sync it to the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        trusted.directory(path.parent) as folder,
        os.fdopen(os.open(path.name, flags, mode, dir_fd=folder), "a") as file,
    ):
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> str | None:
    """Return the text of a file that only root can have written; None for any other file."""
    try:
        with trusted.directory(path.parent) as folder:
            if (existing := _opened(path.name, folder)) is None:
                return None
            with os.fdopen(existing, encoding="utf-8") as file:
                return file.read()
    except (OSError, ValueError):
        return None


def record(cls: type[T], path: Path) -> T | None:
    """Return the record in a JSON file that only root can have written; None for any other file."""
    return documents.decoded(cls, read(path))


def point(link: Path, target: str) -> None:
    """Switch a link in one step, and sync it to the disk."""
    with trusted.directory(link.parent) as folder:
        temporary = _free(f".{link.name}.new", folder)
        os.symlink(target, temporary, dir_fd=folder)
        os.replace(temporary, link.name, src_dir_fd=folder, dst_dir_fd=folder)
        _sync(folder)


def target(link: Path) -> str | None:
    """Return the name of a link's target; None if the path is not a link."""
    return link.readlink().name if link.is_symlink() else None


def _opened(name: str, folder: int) -> int | None:
    """Return a descriptor of a regular file that only root can change; None for any other file."""
    try:
        handle = os.open(name, _OLD, dir_fd=folder)
    except OSError:
        return None
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and trusted.why(about) is None:
        return handle
    os.close(handle)
    return None


def _free(name: str, folder: int) -> str:
    """Remove anything with this name, and return the name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    return name


def _sync(folder: int) -> None:
    handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

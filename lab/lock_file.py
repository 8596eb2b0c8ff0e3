"""A kernel lock on a file that only root can open: the lock ends with its holder, even after a
crash.

The file is removed when the lock is released. So a process that has locked a file must check
whether the path still leads to this file: another process may have removed the file meanwhile.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

#: The lock lasts for this boot, like the machines, and lies below a directory that only root can
#: write to.
PLACE = Path("/run/sparkwright-lab")


def opened(file: Path) -> int:
    """Open the file, which is made if it is missing, in a directory that only its owner can access.
    Returns the descriptor.
    """
    while True:
        with contextlib.suppress(FileExistsError):
            file.parent.mkdir(mode=0o700)
        try:
            folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # the last holder has just removed the folder
        except NotADirectoryError:
            raise SystemExit(f"{file.parent} is not a directory: remove it") from None
        try:
            about = os.fstat(folder)
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise SystemExit(f"{file.parent} needs owner root and mode 0700: remove it")
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(file.name, flags, 0o600, dir_fd=folder)
        except FileNotFoundError:
            continue
        finally:
            os.close(folder)


def in_place(descriptor: int, file: Path) -> bool:
    """Return whether the descriptor belongs to the file that is now at the path."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def release(descriptor: int, file: Path) -> None:
    """Release the lock, and remove the file and, if it is empty, its folder."""
    if in_place(descriptor, file):
        file.unlink()
    os.close(descriptor)
    with contextlib.suppress(OSError):
        file.parent.rmdir()


@contextlib.contextmanager
def one_at_a_time(file: Path, waiting: str) -> Iterator[None]:
    """Wait for exclusive access; print ``waiting`` if another process has access now."""
    while True:
        descriptor = opened(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(waiting, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if in_place(descriptor, file):
            break
        os.close(descriptor)
    try:
        yield
    finally:
        release(descriptor, file)

"""Files that the user already has on this host: a plain download, a cache, another layout.

They are found by the hash of their content; names and directories do not matter. Their owners may
change them later, so root keeps a copy of its own, which takes no space where the file system can
clone files (Btrfs, XFS), and hashes that. Only what root alone can write, the file and every
directory above it, is hard linked. The user's directories are not changed.
"""

from __future__ import annotations

import fcntl
import os
import stat
from io import FileIO
from pathlib import Path
from threading import Event

from sparkwright.host.fetch.errors import Temporary
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.lib import trusted

#: Levels below the given directories that are searched: a home has many files.
_DEPTH = 7
_BUFFER = 4 << 20
#: How a file was taken, besides "cloned" and "copied".
LINKED = "linked"
_FICLONE = 0x40049409  # linux/fs.h
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def candidates(roots: tuple[str, ...], files: list[FetchFile]) -> dict[int, list[Path]]:
    """Return the regular files below the roots that have the size of a requested file, by size.

    A hub's cache keeps content in ``blobs/`` under its hash and links in ``snapshots/``: the blobs
    are found like any other file, and links are not followed.
    """
    sizes = {file.size for file in files}
    found: dict[int, list[Path]] = {}
    matching = (path for root in roots for path in sorted(Path("/").glob(root.lstrip("/"))))
    for root in dict.fromkeys(map(str, matching)):
        base = root.count("/")
        for directory, names, entries in os.walk(root):
            if directory.count("/") - base >= _DEPTH:
                names.clear()
            names[:] = [name for name in names if not name.startswith(".staging-")]
            for name in entries:
                path = Path(directory, name)
                try:
                    stat = path.lstat()
                except OSError:
                    continue
                if path.is_symlink() or stat.st_size not in sizes or stat.st_size == 0:
                    continue
                found.setdefault(stat.st_size, []).append(path)
    return found


def worth_copying(file: FetchFile, found: dict[int, list[Path]]) -> list[Path]:
    """Return the three likeliest, best first: those with the hash or name of the file come first.

    Small files are likely only by their name, large ones always.
    """
    name, hashes = Path(file.path).name, {file.sha256, file.blob_id}
    paths = found.get(file.size, [])
    if file.size < 1 << 20:
        paths = [path for path in paths if path.name == name or path.name in hashes]
    return sorted(paths, key=lambda path: (path.name not in hashes, path.name != name))[:3]


def take(source: Path, target: Path, size: int, room: int, stop: Event) -> str | None:
    """Link, clone or copy a file of so many bytes. Returns how, None if it can't be done.

    The copy shares its blocks with the source where the file system can (a reflink).

    Args:
        room: bytes that a copy may take on the file system.
    """
    target.unlink(missing_ok=True)
    if _link(source, target):
        return LINKED
    try:
        descriptor = os.open(source, _READ)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size != size:
                return None
            return _copy(file, target, size, room, stop)
    except OSError as error:
        log(f"cannot copy {source}: {error.strerror}")
        target.unlink(missing_ok=True)
        return None


def _link(source: Path, target: Path) -> bool:
    """Give a file a second name, if root alone can write to it and everybody read it."""
    if os.geteuid() != 0 or trusted.exposed(source) is not None:
        return False
    try:
        if not source.lstat().st_mode & 0o004:
            return False
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(file: FileIO, target: Path, size: int, room: int, stop: Event) -> str | None:
    """Copy exactly so many bytes, whatever the source becomes meanwhile."""
    with os.fdopen(os.open(target, _NEW, 0o600), "wb", buffering=0) as copy:
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, file.fileno())
        except OSError:
            if size > room:
                target.unlink()
                return None
        else:
            os.ftruncate(copy.fileno(), size)
            return "cloned"
        left = size
        while left:
            piece = file.read(min(left, _BUFFER))
            if not piece:
                break  # it is shorter now: its hash will be wrong
            if stop.is_set():
                raise Temporary("stopped")
            left -= copy.write(piece)
    return "copied"

"""Files that the user already has on this host: a plain download, a cache, another layout.

They are found by the hash of their content; names and directories do not matter. They are hard
linked on the same file system, so that the bytes are stored once, and copied otherwise; the user's
directories are not changed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sparkwright.host.contracts.fetch import FetchFile
from sparkwright.host.fetch.progress import log

#: Levels below the given directories that are searched: a home has many files.
_DEPTH = 7


def candidates(roots: tuple[str, ...], files: list[FetchFile]) -> dict[int, list[Path]]:
    """Return the regular files below the roots that have the size of a requested file, by size.

    A hub's cache keeps content in ``blobs/`` under its hash and links in ``snapshots/``: the blobs
    are found like any other file, and links are not followed.
    """
    sizes = {file.size for file in files}
    found: dict[int, list[Path]] = {}
    for root in dict.fromkeys(str(place) for one in roots for place in _matching(one)):
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


def _matching(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.lstrip("/")))


def worth_hashing(file: FetchFile, paths: list[Path]) -> list[Path]:
    """Return the likely ones, best first: those with the hash or name of the file come first.

    Small files are likely only by their name, large ones always.
    """
    name, hashes = Path(file.path).name, {file.sha256, file.blob_id}
    if file.size < 1 << 20:
        paths = [path for path in paths if path.name == name or path.name in hashes]
    return sorted(paths, key=lambda path: (path.name not in hashes, path.name != name))


def place(source: Path, target: Path, *, world_readable: bool) -> bool:
    """Link a file to target, or else copy it. Returns False if neither is possible."""
    target.unlink(missing_ok=True)
    if world_readable:
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            pass
        else:
            return True
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except OSError as error:
        log(f"cannot copy {source}: {error.strerror}")
        target.unlink(missing_ok=True)
        return False
    return True

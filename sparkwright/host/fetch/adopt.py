"""Files that the user has on this host already: a plain download, a cache, another layout.

Only their content counts, by its hash; names and directories around it may be anything. They are
linked where the file system is the same (the bytes are then there once), and copied otherwise;
the user's own directories are not changed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import File

#: Directories below these are looked at, at most so deep: a home has many files.
_DEPTH = 7


def candidates(roots: tuple[str, ...], files: list[File]) -> dict[int, list[Path]]:
    """Regular files below the roots that have the size of a wanted file, by size.

    A hub's cache keeps content in ``blobs/`` under its hash and links in ``snapshots/``: the
    blobs are found like any other file, and links are not followed.
    """
    sizes = {file.size for file in files}
    found: dict[int, list[Path]] = {}
    for root in dict.fromkeys(str(place) for one in roots for place in _matches(one)):
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


def _matches(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.lstrip("/")))


def order(file: File, paths: list[Path]) -> list[Path]:
    """The likelier ones first: of the file's own hash or name."""
    names = {file.sha256, file.blob_id}
    return sorted(
        paths, key=lambda path: (path.name not in names, path.name != Path(file.path).name)
    )


def plausible(file: File, path: Path) -> bool:
    """Whether a file is worth hashing: large ones always, small ones by their name."""
    return file.size >= 1 << 20 or path.name in {
        Path(file.path).name, file.sha256, file.blob_id
    }  # fmt: skip


def take(source: Path, target: Path, *, world_readable: bool) -> bool:
    """Put a file at target: linked, or else copied. False where neither can be done."""
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
        log(f"{source} can't be copied: {error.strerror}")
        target.unlink(missing_ok=True)
        return False
    return True

"""The files that a peer server reads: those of models and images, and its keys.

Every name is checked after it was unquoted, once. Every file is opened below a fixed directory,
name by name, without following links; what is not a regular file is not there.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
import urllib.parse
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwright.host.fetch import holes, peer_auth
from sparkwright.host.fetch.request import PAGE, PeerRoots
from sparkwright.host.lib import processes

_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIRECTORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
#: No separator, no control character; "." and ".." are refused apart.
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f-\x9f]{1,255}")
_DEEPEST = 16
_LARGEST_HOLDER = 4096
_MOST_RANGES = 1000
#: Writers end on multiples of this: bytes beyond the last one may be half written.
_SETTLED = 256 << 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
#: Seconds after which a run's key counts no more: the longest download ends before.
LIFE = 2 * 86400
_LARGEST_KEY = 128


@dataclass(frozen=True)
class Place:
    """A revision of a model or an image: the names of the directories down to it."""

    root: str
    parent: tuple[str, ...]
    revision: str


@dataclass(frozen=True)
class OpenFile:
    """An open file, to be closed.

    Attributes:
        complete: whether nothing will be added to it.
        missing: its missing ranges by its map; None where it has none, and its holes tell.
    """

    descriptor: int
    size: int
    complete: bool
    missing: list[tuple[int, int]] | None = None

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def names(path: str) -> list[str] | None:
    """The names of an address's path; None if one of them is not the name of a file."""
    try:
        result = [urllib.parse.unquote(part, errors="strict") for part in path.split("/")[1:]]
    except UnicodeDecodeError:
        return None
    valid = all(_NAME.fullmatch(name) and name not in (".", "..") for name in result)
    return result if valid and len(result) <= _DEEPEST + 4 else None


def _open(root: str, parts: tuple[str, ...]) -> int:
    """A file or directory below a root. Raises OSError, also for a link on the way."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for n, part in enumerate(parts, 1):
        try:
            below = os.open(part, _OPEN | (os.O_DIRECTORY if n < len(parts) else 0), dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _regular(root: str, parts: tuple[str, ...], *, complete: bool) -> OpenFile | None:
    try:
        descriptor = _open(root, parts)
    except OSError:
        return None
    result = os.fstat(descriptor)
    if stat.S_ISREG(result.st_mode):
        return OpenFile(descriptor, result.st_size, complete)
    os.close(descriptor)
    return None


def _with_map(part: OpenFile, place: Place, below: tuple[str, ...]) -> OpenFile:
    """A part with what its map says, where it has one."""
    beside = (*place.parent, *below[:-1], f"{below[-1]}.map")
    result = _regular(place.root, beside, complete=True)
    if result is None:
        return part
    with result, open(result.descriptor, "rb", closefd=False) as file:
        pages = file.read(-(-part.size // PAGE))
    return replace(part, missing=holes.unmarked(pages, part.size))


def text(root: str, parts: tuple[str, ...], largest: int) -> str | None:
    """A small regular file below a root; None if there is none, or it is larger."""
    file = _regular(root, parts, complete=True)
    if file is None:
        return None
    with file:
        content = os.read(file.descriptor, largest)
    return content.decode(errors="replace") if file.size <= largest else None


class Store:
    """Finds files below the two roots."""

    def __init__(self, roots: PeerRoots) -> None:
        self._roots = {"models": roots.models, "images": roots.images}

    def place(self, parts: list[str]) -> tuple[Place, tuple[str, ...]] | None:
        """The revision that names lead to, and the names below it; None for invalid ones."""
        kind = parts[0] if parts else ""
        depth = {"models": 3, "images": 2}.get(kind)
        if depth is None or not depth < len(parts) <= depth + _DEEPEST:
            return None
        *parent, revision = parts[1:depth]
        if not _HEX.fullmatch(revision) or not all(map(_DIRECTORY.fullmatch, parent)):
            return None
        return Place(self._roots[kind], tuple(parent), revision), tuple(parts[depth:])

    def find(self, place: Place, path: tuple[str, ...]) -> OpenFile | None:
        """A file of a revision, open; None if nothing of it is on the disk."""
        stage = f".staging-{place.revision}"
        part = (*path[:-1], f"{path[-1]}.part")
        for below, complete in (
            ((place.revision, *path), True),
            ((stage, "files", *path), True),
            ((stage, "parts", *part), False),
        ):
            result = _regular(place.root, (*place.parent, *below), complete=complete)
            if result is not None:
                return result if complete else _with_map(result, place, below)
        return None

    def fetching(self, place: Place) -> bool:
        """Whether a fetch of this revision runs."""
        stage = (*place.parent, f".staging-{place.revision}", "holder.json")
        try:
            holder = json.loads(text(place.root, stage, _LARGEST_HOLDER) or "")
            return processes.runs(holder["pid"], "fetch.py")
        except (ValueError, KeyError, TypeError):
            return False

    def ended(self, place: Place) -> bool:
        """Whether a revision is complete and nothing will be added to it."""
        there = self._is_directory(place, place.revision)
        return there and not self._is_directory(place, f".staging-{place.revision}")

    def images(self) -> list[Place]:
        """Every image, also those that are being fetched."""
        with suppress(OSError):
            listed = Path(self._roots["images"]).iterdir()
            result = {item.name.removeprefix(".staging-") for item in listed}
            return [
                Place(self._roots["images"], (), item) for item in result if _HEX.fullmatch(item)
            ]
        return []

    def _is_directory(self, place: Place, name: str) -> bool:
        try:
            descriptor = _open(place.root, (*place.parent, name))
        except OSError:
            return False
        with OpenFile(descriptor, 0, False):
            return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def available(file: OpenFile) -> list[tuple[int, int]]:
    """The ranges of a file that are on the disk; of very many, the first."""
    if file.complete:
        return [(0, file.size)] if file.size else []
    result, at = [], 0
    lacking = holes.of(file.descriptor, file.size) if file.missing is None else file.missing
    for start, end in [*lacking, (file.size, file.size)]:
        # Only the end of a range that is followed by a hole can be half written.
        settled = start if start == file.size else start // _SETTLED * _SETTLED
        if settled > at:
            result.append((at, settled))
        at = end
    return result[:_MOST_RANGES]


class Keys:
    """Keys of a host that serves: one file per run, read when a request names the run."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def are_there(self) -> bool:
        """Whether there is such a directory still."""
        return Path(self._directory).is_dir()

    def of(self, run: str) -> str | None:
        """A run's key; None if there is none, or it is too old."""
        if not peer_auth.RUN.fullmatch(run):
            return None
        with suppress(OSError):
            # Both times are this host's: no other clock matters.
            age = time.time() - Path(self._directory, run).stat().st_mtime
            if age < LIFE:
                return (text(self._directory, (run,), _LARGEST_KEY) or "").strip() or None
        return None

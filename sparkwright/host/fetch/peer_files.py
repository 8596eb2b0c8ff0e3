"""Files that a peer server reads: models, images and the server's keys.

Every name is unquoted once and then checked. Every file is opened below a fixed directory, name by
name, without following links. Anything but a regular file counts as missing.
"""

import os
import re
import stat
import time
import urllib.parse
from contextlib import suppress
from pathlib import Path

from sparkwright.host.fetch import holes, peer_auth, request
from sparkwright.host.lib import documents, processes, records

_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIRECTORY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
#: A name without separators and control characters; "." and ".." are refused separately.
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f-\x9f]{1,255}")
_DEEPEST = 16
_LARGEST_HOLDER = 4096
_MOST_RANGES = 1000
#: Writers end on multiples of this size: bytes beyond the last multiple may be half written.
_SETTLED = 256 << 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
#: Seconds after which a run's key expires; every download ends earlier.
LIFE = 2 * 86400
_LARGEST_KEY = 128


@records.dataclass(frozen=True)
class OpenFile:
    """An open file, which the caller closes.

    Attributes:
        complete: whether the file has all its bytes.
        missing: missing ranges, from the file's map; None without a map, when the holes are the
            missing ranges.
    """

    descriptor: int
    size: int
    complete: bool
    missing: holes.Ranges | None = None

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def available(self) -> holes.Ranges:
        """Return the ranges that are on the disk; if there are very many, only the first ranges."""
        if self.complete:
            return [(0, self.size)] if self.size else []
        result, at, missing = [], 0, self.missing
        if missing is None:
            missing = holes.of(self.descriptor, self.size)
        for start, end in [*missing, (self.size, self.size)]:
            # Only the end of a range before a hole can be half written.
            settled = start if start == self.size else start // _SETTLED * _SETTLED
            if settled > at:
                result.append((at, settled))
            at = end
        return result[:_MOST_RANGES]


@records.dataclass(frozen=True)
class Revision:
    """A revision of a model or an image: the names of the directories above it, and its own
    name.
    """

    root: str
    parent: tuple[str, ...]
    name: str

    @property
    def _stage(self) -> str:
        return f".staging-{self.name}"

    def find(self, path: tuple[str, ...]) -> OpenFile | None:
        """Return an open file; None if no part of the file is on the disk."""
        for folder in ((self.name,), (self._stage, "files")):
            file = _regular(self.root, (*self.parent, *folder, *path))
            if file is not None:
                return file
        below = (*self.parent, self._stage, "parts", *path[:-1])
        part = _regular(self.root, (*below, f"{path[-1]}.part"))
        beside = _regular(self.root, (*below, f"{path[-1]}.part.map")) if part else None
        if part is None or beside is None:
            return part and records.replace(part, complete=False)
        with beside, open(beside.descriptor, "rb", closefd=False) as content:
            pages = content.read(-(-part.size // request.PAGE))
        return records.replace(part, complete=False, missing=holes.unmarked(pages, part.size))

    def fetching(self) -> bool:
        """Return whether a fetch of this revision is running."""
        stage = (*self.parent, self._stage, "holder.json")
        holder = documents.parsed(text(self.root, stage, _LARGEST_HOLDER)) or {}
        return processes.runs(holder.get("pid"), "fetch.py")

    def ended(self) -> bool:
        """Return whether the revision is complete and will get no more files."""
        return self._has_directory(self.name) and not self._has_directory(self._stage)

    def _has_directory(self, name: str) -> bool:
        with suppress(OSError):
            os.close(_open(self.root, (*self.parent, name), os.O_DIRECTORY))
            return True
        return False


def names(path: str) -> list[str] | None:
    """Return the names in an address's path; None if a part can't be a file name."""
    try:
        result = [urllib.parse.unquote(part, errors="strict") for part in path.split("/")[1:]]
    except UnicodeDecodeError:
        return None
    valid = all(_NAME.fullmatch(name) and name not in (".", "..") for name in result)
    return result if valid and len(result) <= _DEEPEST + 4 else None


def revision(
    request: request.PeerServerRequest, parts: list[str]
) -> tuple[Revision, tuple[str, ...]] | None:
    """Return the revision that a path leads to, and the names below the revision; None for an
    invalid path.
    """
    kind = parts[0] if parts else ""
    depth = {"models": 3, "images": 2}.get(kind)
    if depth is None or not depth < len(parts) <= depth + _DEEPEST:
        return None
    *parent, name = parts[1:depth]
    if not _HEX.fullmatch(name) or not all(map(_DIRECTORY.fullmatch, parent)):
        return None
    return Revision(getattr(request, kind), tuple(parent), name), tuple(parts[depth:])


def images(root: str) -> list[Revision]:
    """Return every image below a root, including images that are being downloaded."""
    with suppress(OSError):
        listed = {path.name.removeprefix(".staging-") for path in Path(root).iterdir()}
        return [Revision(root, (), name) for name in listed if _HEX.fullmatch(name)]
    return []


def run_key(directory: str, run: str) -> str | None:
    """Return a serving host's key for a run; None if the key is missing or too old."""
    with suppress(OSError):
        # This host's clock gives both times, so no other clock matters.
        if (
            peer_auth.RUN.fullmatch(run)
            and time.time() - Path(directory, run).stat().st_mtime < LIFE
        ):
            return (text(directory, (run,), _LARGEST_KEY) or "").strip() or None
    return None


def text(root: str, parts: tuple[str, ...], largest: int) -> str | None:
    """Return the text of a small regular file below a root; None if it is missing or too large."""
    if (file := _regular(root, parts)) is None:
        return None
    with file:
        content = os.read(file.descriptor, largest)
    return content.decode(errors="replace") if file.size <= largest else None


def _open(root: str, parts: tuple[str, ...], last: int = 0) -> int:
    """Open a file or directory below a root. Raises OSError, also for a link in the path."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for n, part in enumerate(parts, 1):
        try:
            below = os.open(part, _OPEN | (os.O_DIRECTORY if n < len(parts) else last), dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _regular(root: str, parts: tuple[str, ...]) -> OpenFile | None:
    try:
        descriptor = _open(root, parts)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return OpenFile(descriptor, status.st_size, complete=True)
    os.close(descriptor)
    return None

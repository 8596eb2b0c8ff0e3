"""Hashes of files on the disk, and what passes for the wanted content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from threading import Event

from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import Temporary
from sparkwright.host.fetch.request import File

_BUFFER = 4 << 20
_POINTER = b"version https://git-lfs.github.com/spec/"


def digests(path: Path, size: int, with_blob_id: bool, stop: Event) -> tuple[str, str | None]:
    """Return (sha256, git blob id or None) of a file of `size` bytes.

    hashlib releases the interpreter lock, so several files can be hashed in threads.
    """
    sha256 = hashlib.sha256()
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False) if with_blob_id else None
    buffer = memoryview(bytearray(min(_BUFFER, max(size, 1))))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            if stop.is_set():
                raise Temporary("stopped")
            sha256.update(buffer[:count])
            if blob is not None:
                blob.update(buffer[:count])
    return sha256.hexdigest(), blob.hexdigest() if blob is not None else None


class Follower:
    """Hashes a part while it is being filled, so that the end of a fetch waits for no reading.

    A part is filled in many places at once; what is there from its beginning on is hashed. The
    digest is a hint: where it is not the wanted one, the part is hashed once more at rest.
    """

    #: Writers end on multiples of this: what lies beyond may be half written.
    _SETTLED = 2 << 20
    _STEP = 64 << 20
    _POLL = 0.05

    def __init__(self, part: Path, size: int, stop: Event) -> None:
        self._part = part
        self._size = size
        self._stop = stop
        self._whole = Event()
        self._given_up = Event()

    def whole(self) -> None:
        """All bytes are there."""
        self._whole.set()

    def give_up(self) -> None:
        """They will not come."""
        self._given_up.set()

    def run(self) -> str | None:
        """Return the sha256 once all bytes are there; None when that was given up."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(_BUFFER))
        at = told = 0
        with self._part.open("rb", buffering=0) as file:
            while at < self._size:
                if self._stop.is_set() or self._given_up.is_set():
                    return None
                end = self._size if self._whole.is_set() else self._settled(at)
                if end <= at:
                    self._whole.wait(self._POLL)
                    continue
                while at < end:
                    count = file.readinto(buffer[: min(_BUFFER, end - at)])
                    if not count:
                        return None
                    digest.update(buffer[:count])
                    at += count
                    if at - told >= self._STEP:
                        # To the disk now, and out of memory: a Spark has one pool of it, and the
                        # end waits less for what is on its way already.
                        os.posix_fadvise(file.fileno(), told, at - told, os.POSIX_FADV_DONTNEED)
                        told = at
                    if self._stop.is_set():
                        return None
        return digest.hexdigest()

    def _settled(self, at: int) -> int:
        missing = holes.missing(self._part, self._size)
        return missing[0][0] // self._SETTLED * self._SETTLED if missing else at


def mismatch(file: File, sha256: str, blob_id: str | None) -> str | None:
    """Return "wanted ..., got ..." when a digest is not the wanted one, else None."""
    if file.sha256 is not None:
        return None if sha256 == file.sha256 else f"wanted sha256 {file.sha256}, got {sha256}"
    return None if blob_id == file.blob_id else f"wanted git blob {file.blob_id}, got {blob_id}"


def is_pointer(path: Path) -> bool:
    """Tell whether a file is a Git LFS pointer: the note that stands for a large file."""
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER

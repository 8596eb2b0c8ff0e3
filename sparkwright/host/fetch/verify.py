"""Hashes of files on the disk, compared with the expected ones."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.holes import Part
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.lib.receipt import ReceiptEntry

_BUFFER = 4 << 20
_POINTER = b"version https://git-lfs.github.com/spec/"


def _digests(path: Path, size: int, with_blob_id: bool, stop: Event) -> tuple[str, str | None]:
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


class Follower(Thread):
    """Hashes a part while it is being filled, so that little is left to read at the end.

    A part is filled in many places at once; the bytes before its first hole are hashed. The digest
    is a hint: if it is not the expected one, the complete part is hashed once more.
    """

    #: Writers end on multiples of this: bytes beyond the last one may be half written.
    _SETTLED = 2 << 20
    _STEP = 64 << 20
    _POLL = 0.05

    def __init__(self, part: Part, stop: Event) -> None:
        super().__init__(daemon=True)
        self._part = part
        self._end = stop
        self._filled = False
        self._over = Event()
        self._sha256: str | None = None

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._filled = kind is None
        self._over.set()

    def sha256(self) -> str | None:
        """Return the sha256 of a filled part; None if it could not be hashed."""
        self.join()
        return self._sha256

    def run(self) -> None:
        """Hash the part until it is filled, or never will be."""
        digest, size = hashlib.sha256(), self._part.file.size
        buffer = memoryview(bytearray(min(_BUFFER, max(size, 1))))
        at = flushed = 0
        with suppress(OSError), self._part.path.open("rb", buffering=0) as file:
            while at < size:
                end = self._settled(at)
                if end <= at and self._over.wait(self._POLL) and not self._filled:
                    return
                while at < end:
                    count = file.readinto(buffer[: end - at])
                    if not count or self._end.is_set():
                        return
                    digest.update(buffer[:count])
                    at += count
                    if at - flushed >= self._STEP:
                        # Starts writing to the disk now, so that the last sync is short, and frees
                        # the page cache, which on a Spark shares its memory with the GPU.
                        handle, length = file.fileno(), at - flushed
                        os.posix_fadvise(handle, flushed, length, os.POSIX_FADV_DONTNEED)
                        flushed = at
            self._sha256 = digest.hexdigest()

    def _settled(self, at: int) -> int:
        """Return up to where the part can be hashed."""
        if self._filled:
            return self._part.file.size
        gaps = self._part.missing()
        return gaps[0][0] // self._SETTLED * self._SETTLED if gaps else at


def entry(file: FetchFile, path: Path, stop: Event, known: str | None = None) -> ReceiptEntry | str:
    """Return the receipt entry of a complete file, or what is wrong with it.

    known: its sha256, if it was hashed while it arrived.
    """
    status = path.lstat()
    if status.st_size != file.size:
        return f"expected {file.size} bytes, got {status.st_size}"
    sha256, blob_id = known, file.blob_id
    if sha256 is None or sha256 != file.sha256:
        sha256, blob_id = _digests(path, file.size, file.sha256 is None, stop)
    if file.sha256 not in (None, sha256):
        return f"expected sha256 {file.sha256}, got {sha256}"
    if file.sha256 is None and blob_id != file.blob_id:
        return f"expected git blob {file.blob_id}, got {blob_id}"
    if is_pointer(path):
        raise Failed("pointer", file=file.path)
    return ReceiptEntry(file.size, status.st_mtime_ns, sha256, file.blob_id)


def is_pointer(path: Path) -> bool:
    """Return whether a file is a Git LFS pointer instead of the large file itself."""
    with path.open("rb") as file:
        return path.stat().st_size < 1024 and file.read(len(_POINTER)) == _POINTER


def cpus() -> int:
    """Return how many files are hashed at once: the host may be serving."""
    return max(1, min(4, os.cpu_count() or 1))

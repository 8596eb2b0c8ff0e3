"""Hashes of files on the disk, compared with the expected hashes."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from sparkwright.host.fetch import holes, messages, request
from sparkwright.host.lib.receipt import ReceiptEntry

_BUFFER = 4 << 20
_POINTER = b"version https://git-lfs.github.com/spec/"


def _digests(path: Path, size: int, with_blob_id: bool, stop: Event) -> list[str]:
    """Return the sha256 of a file of `size` bytes, and its git blob id if ``with_blob_id``.

    hashlib releases the interpreter lock, so several files can be hashed in threads.
    """
    digests = [hashlib.sha256()]
    if with_blob_id:
        digests.append(hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False))
    buffer = memoryview(bytearray(min(_BUFFER, max(size, 1))))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            messages.check(stop)
            for digest in digests:
                digest.update(buffer[:count])
    return [digest.hexdigest() for digest in digests]


class Follower(Thread):
    """Thread that hashes a part during its download: at the end, little is left to read.

    A part is filled in many places at once; only the bytes before its first hole are hashed. If the
    digest differs from the expected digest, the complete part is hashed once more.
    """

    #: Writers end on multiples of this number: bytes beyond the last multiple may be half written.
    _SETTLED = 2 << 20
    _STEP = 64 << 20
    _POLL = 0.05

    def __init__(self, part: holes.Part, stop: Event) -> None:
        super().__init__(daemon=True)
        self._part = part
        self._end = stop
        self._filled = False
        self._over = Event()
        self._sha256: str | None = None

    def __enter__(self) -> "Follower":
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._filled = kind is None
        self._over.set()

    def sha256(self) -> str | None:
        """Return the sha256 of a filled part; None if the part could not be hashed."""
        self.join()
        return self._sha256

    def run(self) -> None:
        """Hash the part until it is complete or the fetch has ended."""
        digest, size = hashlib.sha256(), self._part.file.size
        buffer = memoryview(bytearray(min(_BUFFER, max(size, 1))))
        at = synced = 0
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
                    if at - synced >= self._STEP:
                        # Start writing to the disk now, so that the last sync is short, and free
                        # the page cache, which on a Spark shares its memory with the GPU.
                        os.posix_fadvise(file.fileno(), synced, at - synced, os.POSIX_FADV_DONTNEED)
                        synced = at
            self._sha256 = digest.hexdigest()

    def _settled(self, at: int) -> int:
        """Return the position up to which the part can be hashed."""
        if self._filled:
            return self._part.file.size
        gaps = self._part.missing()
        return gaps[0][0] // self._SETTLED * self._SETTLED if gaps else at


def entry(
    file: request.FetchFile, path: Path, stop: Event, hashed: str | None = None
) -> ReceiptEntry | str:
    """Return the receipt entry of a complete file, or its fault.

    hashed: the file's sha256, if it was hashed during the download.
    """
    status = path.lstat()
    if status.st_size != file.size:
        return f"expected {file.size} bytes, got {status.st_size}"
    ready = [hashed] if hashed and hashed == file.sha256 else None
    digests = ready or _digests(path, file.size, file.sha256 is None, stop)
    kind, expected = ("git blob", file.blob_id) if file.sha256 is None else ("sha256", file.sha256)
    if digests[-1] != expected:
        return f"expected {kind} {expected}, got {digests[-1]}"
    if is_pointer(path):
        raise messages.Failed("pointer", file=file.path)
    return ReceiptEntry(file.size, status.st_mtime_ns, digests[0], file.blob_id)


def is_pointer(path: Path) -> bool:
    """Return whether a file is a Git LFS pointer instead of the large file itself."""
    with path.open("rb") as file:
        return path.stat().st_size < 1024 and file.read(len(_POINTER)) == _POINTER

"""Hashes of files on the disk, and what passes for the wanted content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Event

from .errors import Temporary
from .request import File

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


def mismatch(file: File, sha256: str, blob_id: str | None) -> str | None:
    """Return "wanted ..., got ..." when a digest is not the wanted one, else None."""
    if file.sha256 is not None:
        return None if sha256 == file.sha256 else f"wanted sha256 {file.sha256}, got {sha256}"
    return None if blob_id == file.blob_id else f"wanted git blob {file.blob_id}, got {blob_id}"


def is_pointer(path: Path) -> bool:
    """Tell whether a file is a Git LFS pointer: the note that stands for a large file."""
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER

"""The files of a run that are verified and in place, as entries of the coming receipt."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Lock

from sparkwright.host.fetch import verify
from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.place import Ownership, Stage
from sparkwright.host.fetch.progress import Progress
from sparkwright.host.fetch.request import FetchFile
from sparkwright.host.lib.receipt import ReceiptEntry


def cpus() -> int:
    """Return how many files are hashed at once: the host may be serving."""
    return max(1, min(4, os.cpu_count() or 1))


def is_pointer(path: Path) -> bool:
    """Return whether a file is a Git LFS pointer, by its size and start."""
    return path.stat().st_size < 1024 and verify.is_pointer(path)


class Verified:
    """Safe for threads."""

    def __init__(self, stage: Stage, owner: Ownership, progress: Progress, stop: Event) -> None:
        self._stage = stage
        self._owner = owner
        self._progress = progress
        self._stop = stop
        self._lock = Lock()
        self.entries: dict[str, ReceiptEntry] = {}

    def add(self, file: FetchFile, entry: ReceiptEntry, *, keep: bool = False) -> None:
        """Add a file that is in place and not this run's own work.

        keep: whether no receipt has its entry yet.
        """
        with self._lock:
            self.entries[file.path] = entry
            if keep:
                self._stage.keep(self.entries)
        self._finish(file)

    def check(self, file: FetchFile, path: Path, known: str | None = None) -> str | None:
        """Return what is wrong with a complete file, or None; its digests are kept then.

        known: its sha256, if it was hashed while it arrived.
        """
        found = path.lstat()
        if found.st_size != file.size:
            return f"expected {file.size} bytes, got {found.st_size}"
        if is_pointer(path):
            raise Failed(
                f"{file.path} is a Git LFS pointer in the repository itself: the large file was "
                "never uploaded there. Choose another revision."
            )
        if known is not None and known == file.sha256:
            sha256, blob_id = known, None
        else:
            sha256, blob_id = verify.digests(path, file.size, file.sha256 is None, self._stop)
        wrong = verify.mismatch(file, sha256, blob_id)
        if wrong is None:
            with self._lock:
                self.entries[file.path] = ReceiptEntry(
                    file.size, found.st_mtime_ns, sha256, file.blob_id
                )
        return wrong

    def accept(self, file: FetchFile, path: Path) -> None:
        """Write down a checked file that is in place."""
        self._owner.file(path)
        self._finish(file)
        with self._lock:
            self._stage.keep(self.entries)

    def _finish(self, file: FetchFile) -> None:
        self._progress.present(file.path, file.size)
        self._progress.finished()

"""One run of a fetch: its request, its directories, and the files that are verified."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Lock

from sparkwright.host.fetch import verify
from sparkwright.host.fetch.errors import Failed
from sparkwright.host.fetch.place import Ownership, Stage
from sparkwright.host.fetch.progress import Progress
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.lib.receipt import ReceiptEntry


class Workspace:
    """Safe for threads.

    Attributes:
        destination: the directory that is complete in the end.
        base: directory that gets the files: the destination itself where that exists already (a
            file was changed, or it was filled by other means), else the stage's.
        stop: set when the run ends.
        verified: entries of the coming receipt.
    """

    def __init__(self, request: FetchRequest, progress: Progress, stop: Event) -> None:
        self.request = request
        self.progress = progress
        self.stop = stop
        self.stage = Stage(request)
        self.owner = Ownership(request)
        self.destination = Path(request.destination)
        self.repairs = self.destination.is_dir()
        self.base = self.destination if self.repairs else self.stage.files
        self.verified: dict[str, ReceiptEntry] = {}
        self._lock = Lock()

    def add(self, file: FetchFile, entry: ReceiptEntry, *, keep: bool = False) -> None:
        """Add a file that is in place.

        keep: whether no receipt has its entry yet.
        """
        with self._lock:
            self.verified[file.path] = entry
            if keep:
                self.stage.keep(self.verified)
        self.progress.finished(file.path, file.size)

    def verify(self, file: FetchFile, path: Path, known: str | None = None) -> ReceiptEntry | str:
        """Return the receipt entry of a complete file, or what is wrong with it.

        known: its sha256, if it was hashed while it arrived.
        """
        status = path.lstat()
        if status.st_size != file.size:
            return f"expected {file.size} bytes, got {status.st_size}"
        if verify.is_pointer(path):
            raise Failed(
                f"{file.path} is a Git LFS pointer in the repository itself: the large file was "
                "never uploaded there. Choose another revision."
            )
        if known is not None and known == file.sha256:
            return ReceiptEntry(file.size, status.st_mtime_ns, known, file.blob_id)
        sha256, blob_id = verify.digests(path, file.size, file.sha256 is None, self.stop)
        return verify.mismatch(file, sha256, blob_id) or ReceiptEntry(
            file.size, status.st_mtime_ns, sha256, file.blob_id
        )

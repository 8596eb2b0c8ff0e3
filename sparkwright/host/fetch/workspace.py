"""Workspace of a fetch: directories with owners and modes, and the completed files."""

import fcntl
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from threading import Event, Lock

from sparkwright.host.fetch import holes, progress
from sparkwright.host.fetch.messages import Failed, log
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.lib import documents, files, receipt, trusted
from sparkwright.host.lib.receipt import ReceiptEntry

_HOLDER = "holder.json"
_VERIFIED = "verified.json"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """Files of a run; the object is thread-safe.

    A fetch also uses the directory `.staging-<commit>` on the same file system: files/ becomes the
    destination by one rename, parts/ has unverified files, and verified.json has the receipt
    entries of an interrupted run. Only root can enter this directory and its parent: a directory
    that another user has made is removed.

    Attributes:
        destination: the directory to complete.
        stop: set when the run ends.
        verified: entries of the receipt that the run will write.
    """

    def __init__(self, request: FetchRequest, progress: progress.Progress, stop: Event) -> None:
        self.request = request
        self.progress = progress
        self.stop = stop
        self.destination = Path(request.destination)
        self.root = self.destination.parent / f".staging-{request.revision}"
        self.parts = self.root / "parts"
        self.verified: dict[str, ReceiptEntry] = {}
        self._lock = Lock()

    @cached_property
    def base(self) -> Path:
        """Return the directory that gets the files: the destination if it exists (a file was
        changed, or another program filled it), otherwise ``files`` in the staging directory.
        """
        return self.destination if self.destination.is_dir() else self.root / "files"

    def part(self, file: FetchFile) -> holes.Part:
        """Return the part of a file."""
        path = self.parts / f"{file.path}.part"
        return holes.Part(path, file, partial(self.progress.received, file.path))

    @cached_property
    def mapped(self) -> bool:
        """Return whether parts need maps, since the file system does not report holes exactly."""
        return not holes.reported(self.parts)

    def free(self) -> int:
        """Return the file system's free bytes; unbounded if the file system does not report its
        size.
        """
        usage = shutil.disk_usage(self.root)
        return usage.free if usage.total else sys.maxsize

    def receipts(self) -> dict[str, ReceiptEntry]:
        """Return the receipt entries of earlier runs."""
        entries: dict[str, ReceiptEntry] = {}
        if self.base == self.destination:
            old = receipt.read(str(self.base))
            entries = old.files if old and old.commit == self.request.revision else {}
        return entries | (files.record(dict[str, ReceiptEntry], self.root / _VERIFIED) or {})

    def add(self, file: FetchFile, entry: ReceiptEntry, *, keep: bool = False) -> None:
        """Add the entry of a file that is in place.

        keep: whether the entry is in no receipt yet.
        """
        with self._lock:
            self.verified[file.path] = entry
            if keep:
                files.write_record(self.root / _VERIFIED, self.verified)
        self.progress.present(file.path, file.size)

    def put(
        self, path: Path, file: FetchFile, entry: ReceiptEntry, *, published: bool = False
    ) -> None:
        """Put a verified file in place."""
        if not published:
            publish(path)
        real_directories(self.base, file.path)
        path.replace(self.base / file.path)
        self.add(file, entry, keep=True)

    def report_extras(self, expected: Iterable[str]) -> None:
        """Log the files in the destination that are not in the repository."""
        every = self.destination.rglob("*")
        paths = (path for path in every if path.is_symlink() or not path.is_dir())
        extras = {str(path.relative_to(self.destination)) for path in paths}
        extras -= {*expected, receipt.NAME}
        if extras:
            more = f" and {len(extras) - 5} more" if len(extras) > 5 else ""
            log(f"files not in the repository are kept: {', '.join(sorted(extras)[:5])}{more}")

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Lock the stage. Raises Failed, naming the holder, if another run has the lock."""
        trusted.take_over(self.root.parent)
        while True:
            self._make()
            descriptor = os.open(self.root, _DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise Failed("held", holder=self._holder(), path=self.root) from None
            # The previous holder may have removed the directory between the two calls.
            with suppress(FileNotFoundError):
                if os.fstat(descriptor).st_ino == self.root.stat().st_ino:
                    break
            os.close(descriptor)
        state_dir = self.request.state_dir
        holder = {"pid": os.getpid(), "since": int(time.time()), "state_dir": state_dir}
        files.write_record(self.root / _HOLDER, holder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _make(self) -> None:
        """Make the staging directory, and remove anything that another user put in its place."""
        with trusted.directory(self.root.parent):
            with suppress(FileExistsError):
                self.root.mkdir(0o700)
            status = self.root.lstat()
            is_directory = stat.S_ISDIR(status.st_mode)
            if not is_directory or trusted.why(status) is not None:
                log(f"{self.root} was not made by root: removing it")
                (shutil.rmtree if is_directory else os.unlink)(self.root)
                self.root.mkdir(0o700)

    def _holder(self) -> str:
        try:
            holder = documents.read(self.root / _HOLDER) or {}
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
            return f"process {holder['pid']} (since {since}, progress in {holder['state_dir']})"
        except (ValueError, LookupError, TypeError, OverflowError):
            return "another process"


def same(file: FetchFile, entry: ReceiptEntry | None) -> bool:
    """Return whether a receipt entry has the content of a requested file."""
    if entry is None or entry.size != file.size:
        return False
    if file.sha256 is not None:
        return entry.sha256 == file.sha256
    return entry.blob_id == file.blob_id


def publish(path: Path, *, own: bool = True) -> None:
    """Sync a file or directory to the disk.

    own: whether to give the file to root, with a mode that lets everybody read it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if own:
            mode = 0o755 if stat.S_ISDIR(os.fstat(descriptor).st_mode) else 0o644
            trusted.give(descriptor, mode, (0, 0) if os.geteuid() == 0 else None)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def real_directories(base: Path, path: str) -> None:
    """Create the directories of a file below ``base``, and let only root change existing
    directories.

    A link or file in place of a directory is removed.
    """
    at = base
    trusted.take_over(at)
    for part in PurePosixPath(path).parts[:-1]:
        at /= part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            at.unlink()
        trusted.take_over(at)

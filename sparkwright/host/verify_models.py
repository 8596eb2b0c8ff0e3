"""Hashes every file of model directories again, against their receipts. Runs on the host as root.

Receipts are trusted by size and time of change, which finds what was edited and not what a disk
or memory has turned. A directory with a wrong file loses its receipt: the next run looks at every
file of it, keeps what is good and fetches the rest.
"""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sparkwright.host.lib import receipt
from sparkwright.host.lib.receipt import ReceiptEntry


@dataclass(frozen=True)
class Verified:
    """A model that was hashed: how much of it in how many seconds, and what is wrong."""

    files: int
    bytes: int
    seconds: float
    wrong: tuple[str, ...]


_BUFFER = 4 << 20


def sha256(path: Path) -> str:
    """Hash of a file, read past the page cache's good opinion of it where the system can."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_BUFFER))
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def wrong(directory: Path, name: str, entry: ReceiptEntry) -> str | None:
    """Fault of a file; None if there is none."""
    fault = receipt.fault(str(directory / name), entry)
    try:
        if fault is None and sha256(directory / name) != entry.sha256:
            fault = "has other content than was verified"
    except OSError as error:
        fault = f"can't be read: {error.strerror}"
    return fault and f"{name} {fault}"


def verified(text: str) -> Verified:
    """Hash one directory; it loses its receipt where a file is wrong."""
    directory, began = Path(text), time.monotonic()
    kept = receipt.read(text)
    if kept is None:
        return Verified(0, 0, 0.0, ("it has no receipt",))
    files = kept.files
    # hashlib releases the interpreter lock: threads hash side by side.
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        faults = list(pool.map(lambda item: wrong(directory, *item), files.items()))
    bad = tuple(fault for fault in faults if fault)
    if bad:
        (directory / receipt.NAME).unlink()
    size = sum(entry.size for entry in files.values())
    return Verified(len(files), size, time.monotonic() - began, bad)


def main(request: tuple[str, ...]) -> dict[str, Verified]:
    """Hash the directories, one after the other. Answers by directory."""
    os.nice(10)  # the host may be serving
    return {directory: verified(directory) for directory in request}

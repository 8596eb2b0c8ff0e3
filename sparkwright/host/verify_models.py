"""Hash the files of model directories again and compare the hashes with the receipts. The program
runs on the host as root.

A deploy compares the size and modification time with the receipt, which finds edited files but not
bytes that a faulty disk or memory has changed. A directory with a wrong file loses its receipt: the
next fetch checks all its files, keeps the good files and fetches the other files.
"""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sparkwright.host.lib import receipt, records


@records.dataclass(frozen=True)
class Verified:
    """Result for a hashed model: bytes, seconds and faults."""

    files: int
    bytes: int
    seconds: float
    faults: tuple[str, ...]


_BUFFER = 4 << 20


def file_fault(directory: Path, name: str, entry: receipt.ReceiptEntry) -> str | None:
    """Return the fault of a file; None without a fault."""
    if fault := receipt.fault(str(directory / name), entry):
        return f"{name} {fault}"
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_BUFFER))
    try:
        with (directory / name).open("rb", buffering=0) as file:
            # Drop the file from the page cache if the system can, to read the disk itself.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while count := file.readinto(buffer):
                digest.update(buffer[:count])
    except OSError as error:
        return f"{name} can't be read: {error.strerror}"
    good = digest.hexdigest() == entry.sha256
    return None if good else f"{name} has changed since it was verified"


def verified(text: str) -> Verified:
    """Hash a directory's files; a directory with a wrong file loses its receipt."""
    directory, began = Path(text), time.monotonic()
    if (kept := receipt.read(text)) is None:
        return Verified(0, 0, 0.0, ("the directory has no receipt",))
    # hashlib releases the interpreter lock: threads hash in parallel.
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        faults = pool.map(lambda item: file_fault(directory, *item), kept.files.items())
        faulty = tuple(filter(None, faults))
    if faulty:
        (directory / receipt.NAME).unlink()
    size = sum(entry.size for entry in kept.files.values())
    return Verified(len(kept.files), size, time.monotonic() - began, faulty)


def main(request: tuple[str, ...]) -> dict[str, Verified]:
    """Hash the directories one after the other. Returns the results by directory."""
    os.nice(10)  # the host may be serving
    return {directory: verified(directory) for directory in request}

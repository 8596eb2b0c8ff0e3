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
from pathlib import Path
from typing import Any

from sparkwright.host.contracts.receipt import ReceiptEntry
from sparkwright.host.lib import receipt

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
    """What is wrong with one file; None where nothing is."""
    fault = receipt.fault(str(directory / name), entry)
    if fault:
        return f"{name} {fault}"
    try:
        found = sha256(directory / name)
    except OSError as error:
        return f"{name} can't be read: {error.strerror}"
    return None if found == entry.sha256 else f"{name} has other content than was verified"


def main(request: dict[str, Any]) -> dict[str, Any]:
    """``{"directories": [...]}`` -> by directory: files, bytes, seconds, and what is wrong."""
    os.nice(10)  # the host may be serving
    answer: dict[str, Any] = {}
    workers = max(1, min(4, os.cpu_count() or 1))
    for text in request["directories"]:
        directory, began = Path(text), time.monotonic()
        known = receipt.read(text)
        if known is None:
            answer[text] = {"files": 0, "bytes": 0, "seconds": 0.0, "wrong": ["it has no receipt"]}
            continue
        files = known.files
        # hashlib releases the interpreter lock: threads hash side by side.
        with ThreadPoolExecutor(workers) as pool:
            faults = list(pool.map(lambda item: wrong(directory, *item), files.items()))  # noqa: B023
        bad = [fault for fault in faults if fault]
        if bad:
            (directory / receipt.NAME).unlink()
        answer[text] = {
            "files": len(files),
            "bytes": sum(entry.size for entry in files.values()),
            "seconds": time.monotonic() - began,
            "wrong": bad,
        }
    return answer

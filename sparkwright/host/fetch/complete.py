"""Is the destination complete already? Answered from the receipt, in milliseconds.

Imports little, because most runs end here.
"""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.fetch.place import report_extras
from sparkwright.host.fetch.progress import Progress
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.lib import receipt
from sparkwright.host.lib.receipt import ReceiptEntry


def complete(request: FetchRequest, progress: Progress) -> str | None:
    """Return the message when the destination is complete by its receipt, else None."""
    known = receipt.read(request.destination)
    if known is None or receipt.check(request.destination, request.revision) is not None:
        return None
    if not all(same(file, known.files.get(file.path)) for file in request.files):
        return None
    progress.bytes_total = sum(entry.size for entry in known.files.values())
    progress.bytes_kept = progress.bytes_total
    progress.files_total = len(known.files)
    for path, entry in known.files.items():
        progress.finished(path, entry.size)
    report_extras(Path(request.destination), known.files)
    return f"already complete: {request.destination}"


def same(file: FetchFile, entry: ReceiptEntry | None) -> bool:
    """Return whether a receipt entry has the content of a requested file."""
    if entry is None or entry.size != file.size:
        return False
    if file.sha256 is not None:
        return entry.sha256 == file.sha256
    return entry.blob_id == file.blob_id

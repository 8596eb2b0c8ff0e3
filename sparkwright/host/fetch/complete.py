"""Is the destination whole already? Answered from the receipt, in milliseconds.

Imports little, because most runs end here.
"""

from __future__ import annotations

from typing import Any

from sparkwright.host.fetch.place import report_extras
from sparkwright.host.fetch.progress import Progress
from sparkwright.host.fetch.request import File, Request
from sparkwright.host.lib import receipt


def complete(request: Request, progress: Progress) -> str | None:
    """Return the message when the destination is whole by its receipt, else None."""
    destination = request.destination
    if receipt.check(str(destination), request.revision) is not None:
        return None
    known = (receipt.read(str(destination)) or {})["files"]
    if request.files is not None and not all(
        same(file, known.get(file.path)) for file in request.files
    ):
        return None
    progress.bytes_total = sum(entry["size"] for entry in known.values())
    progress.bytes_kept = progress.bytes_total
    progress.files_total = len(known)
    for path, entry in known.items():
        progress.present(path, entry["size"])
        progress.finished()
    report_extras(destination, known)
    return f"already complete: {destination}"


def same(file: File, entry: dict[str, Any] | None) -> bool:
    """Tell whether a receipt entry speaks of the wanted content."""
    if entry is None or entry.get("size") != file.size:
        return False
    if file.sha256 is not None:
        return bool(entry.get("sha256") == file.sha256)
    return bool(entry.get("blob_id") == file.blob_id)

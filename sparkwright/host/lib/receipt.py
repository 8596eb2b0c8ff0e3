"""Receipt of a fetched directory, and its check without reading the files.

A receipt lists the content that was verified once. The receipt is valid for files that only root
can have written since: size and time prove nothing about a file that another user may change.
"""

import os
import stat
from pathlib import Path

from sparkwright.host.lib import files, records, trusted


@records.dataclass(frozen=True)
class ReceiptEntry:
    """A verified file.

    Attributes:
        size: bytes of the file.
        mtime_ns: time of the file's last change before its verification, in ns since the epoch.
        sha256: sha256 of the content.
        blob_id: git's SHA-1 of the content, if the repository names the file by its blob id.
    """

    size: int
    mtime_ns: int
    sha256: str
    blob_id: str | None = None


@records.dataclass(frozen=True)
class Receipt:
    """Receipt of a directory, written after every file was verified.

    Attributes:
        commit: the requested revision; an image's digest without sha256:.
        files: file by path.
    """

    repo: str
    endpoint: str
    commit: str
    files: dict[str, ReceiptEntry]
    version: int = 1


NAME = ".sparkwright-receipt.json"
VERSION = 1


def read(directory: str) -> Receipt | None:
    """Return the receipt of a directory; None if it is missing or invalid.

    A receipt that another user can have written counts as missing.
    """
    receipt = files.record(Receipt, Path(directory, NAME))
    return receipt if receipt and receipt.version == VERSION else None


def fault(path: str, entry: ReceiptEntry) -> str | None:
    """Return a file's deviation from its receipt entry, or None."""
    try:
        result = os.lstat(path)
    except OSError:
        return "is missing"
    if not stat.S_ISREG(result.st_mode):
        return "is not a regular file"
    if reason := trusted.why(result):
        return reason
    if result.st_size != entry.size:
        return f"has {result.st_size} bytes, but {entry.size} in the receipt"
    if result.st_mtime_ns != entry.mtime_ns:
        return "was changed after it was verified"
    return None


def check(directory: str, commit: str) -> str | None:
    """Return why a directory may be incomplete at a commit; None if it is complete.

    Only lstat is used: owner, type, size and mtime of every file in the receipt. Nothing is hashed.
    """
    try:
        result = os.lstat(directory)
    except OSError:
        return "is missing"
    if not stat.S_ISDIR(result.st_mode):
        return "is not a directory"
    if open_to := trusted.exposed(directory):
        return f"can be changed by users other than root: {open_to.path} {open_to.why}"
    if (receipt := read(directory)) is None:
        return "has no receipt"
    if receipt.commit != commit:
        return f"has commit {receipt.commit}"
    for inner in {parent for name in receipt.files for parent in Path(name).parents} - {Path()}:
        if problems := _foreign(Path(directory, inner)):
            return f"{inner} {problems}"
    for name, entry in receipt.files.items():
        if problems := fault(os.path.join(directory, name), entry):  # noqa: PTH118
            return f"{name} {problems}"
    return None


def _foreign(directory: Path) -> str | None:
    """Return why users other than root may change a model's subdirectory; None if only root may, or
    if the subdirectory is missing.
    """
    try:
        result = directory.lstat()
    except OSError:
        return None
    return trusted.why(result) if stat.S_ISDIR(result.st_mode) else "is not a directory"

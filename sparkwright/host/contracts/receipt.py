"""The receipt of a fetched directory: .sparkwright-receipt.json, a JSON object with these keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReceiptEntry:
    """A verified file.

    Attributes:
        size: in bytes.
        mtime_ns: time of its last change when it was verified, in ns since the epoch.
        sha256: of the content.
        blob_id: git's SHA-1 of the content, where the repository names the file by it.
    """

    size: int
    mtime_ns: int
    sha256: str
    blob_id: str | None = None


@dataclass(frozen=True)
class Receipt:
    """Written last, once every file of the directory is verified.

    Attributes:
        commit: the requested revision; an image's digest without sha256:.
        files: by path.
    """

    repo: str
    endpoint: str
    commit: str
    files: dict[str, ReceiptEntry]
    version: int = 1

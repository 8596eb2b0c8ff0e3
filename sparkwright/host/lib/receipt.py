"""The receipt of a fetched model directory, and its check without reading a byte of weights.

Standard library only and no import of a sibling: the source text of this module can be sent
along with a probe.

`.sparkwright-receipt.json` is written last, after every file was verified:
{"version": 1, "repo", "endpoint", "commit", "files": {path: {"size": bytes, "mtime_ns": int,
"sha256": hex, "blob_id": hex, git's sha1 of the file, or null}}}
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any

NAME = ".sparkwright-receipt.json"
VERSION = 1


def read(directory: str) -> dict[str, Any] | None:
    """Return the receipt of a directory, or None when there is none or it makes no sense."""
    try:
        with open(os.path.join(directory, NAME), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            receipt = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(receipt, dict) or receipt.get("version") != VERSION:
        return None
    files = receipt.get("files")
    if not isinstance(files, dict) or not all(isinstance(f, dict) for f in files.values()):
        return None
    return receipt


def fault(path: str, entry: dict[str, Any]) -> str | None:
    """Return what is wrong with one file against its receipt entry, None when nothing is."""
    try:
        found = os.lstat(path)
    except OSError:
        return "is missing"
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    if found.st_size != entry.get("size"):
        return f"has {found.st_size} bytes, the receipt says {entry.get('size')}"
    if found.st_mtime_ns != entry.get("mtime_ns"):
        return "was changed after it was verified"
    return None


def check(directory: str, commit: str) -> str | None:
    """Return why a directory cannot be trusted to hold a commit, None when it can.

    Only lstat is used: size, kind and mtime of every file in the receipt. No hashing.
    """
    try:
        found = os.lstat(directory)
    except OSError:
        return "is missing"
    if not stat.S_ISDIR(found.st_mode):
        return "is no directory of its own"
    receipt = read(directory)
    if receipt is None:
        return "has no receipt"
    if receipt.get("commit") != commit:
        return f"holds commit {receipt.get('commit')}"
    for name, entry in receipt["files"].items():
        wrong = fault(os.path.join(directory, name), entry)  # noqa: PTH118
        if wrong:
            return f"{name} {wrong}"
    return None


def check_all(wanted: list[tuple[str, str]]) -> dict[str, str | None]:
    """Check several (directory, commit) pairs: directory -> None or why not."""
    return {directory: check(directory, commit) for directory, commit in wanted}

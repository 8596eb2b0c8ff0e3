"""The receipt of a fetched directory, and its check without reading a byte of the files."""

from __future__ import annotations

import json
import os
import stat

from sparkwright.host.contracts.receipt import Receipt, ReceiptEntry
from sparkwright.host.contracts.records import decode

NAME = ".sparkwright-receipt.json"
VERSION = 1


def read(directory: str) -> Receipt | None:
    """Return the receipt of a directory, or None if there is none, or it is not valid."""
    try:
        with open(os.path.join(directory, NAME), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            receipt = decode(Receipt, json.load(file))
    except (OSError, ValueError):
        return None
    return receipt if receipt.version == VERSION else None


def fault(path: str, entry: ReceiptEntry) -> str | None:
    """Return what is wrong with one file against its receipt entry, None if nothing is."""
    try:
        found = os.lstat(path)
    except OSError:
        return "is missing"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_size != entry.size:
        return f"has {found.st_size} bytes, but {entry.size} in the receipt"
    if found.st_mtime_ns != entry.mtime_ns:
        return "was changed after it was verified"
    return None


def check(directory: str, commit: str) -> str | None:
    """Return why a directory is not known to be complete at a commit, None if it is.

    Only lstat is used: type, size and mtime of every file in the receipt. Nothing is hashed.
    """
    try:
        found = os.lstat(directory)
    except OSError:
        return "is missing"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    receipt = read(directory)
    if receipt is None:
        return "has no receipt"
    if receipt.commit != commit:
        return f"has commit {receipt.commit}"
    for name, entry in receipt.files.items():
        wrong = fault(os.path.join(directory, name), entry)  # noqa: PTH118
        if wrong:
            return f"{name} {wrong}"
    return None

"""How a fetch ends when it does not end well. The texts are meant for the user."""

from __future__ import annotations

OK, FAILED, TEMPORARY = 0, 1, 75


class Failed(Exception):
    """Running again will not help before someone mends what the text says."""

    exit_code = FAILED


class Temporary(Failed):
    """Running again is the remedy; what was fetched so far is kept."""

    exit_code = TEMPORARY


class NoSpace(Failed):
    """The file system is full."""


def size(count: float) -> str:
    """Return bytes in words, as disks and lines are sold: "1.50 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"

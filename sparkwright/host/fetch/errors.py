"""How a fetch ends when it fails. The texts are messages for the user: cause and remedy."""

from __future__ import annotations

OK, FAILED, TEMPORARY = 0, 1, 75


class Failed(Exception):
    """Somebody must act on the message before another run can succeed."""

    exit_code = FAILED


class Temporary(Failed):
    """Another run may succeed; what was fetched so far is kept."""

    exit_code = TEMPORARY


def size(count: float) -> str:
    """Return a number of bytes with a decimal unit: "1.50 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    return f"{count:.2f} TB"

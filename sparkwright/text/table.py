"""Tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwright.text.visible import visible

#: Characters of a cell.
_LONGEST = 400


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell; what hosts say in them is visible."""
    rows = [[visible(cell, _LONGEST) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

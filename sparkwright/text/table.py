"""Tables of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparkwright.text.screen import fitted, width
from sparkwright.text.visible import visible

#: Characters of a cell.
_LONGEST = 400
_GAP = "  "


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, each column as wide as its widest cell; what hosts say in them is visible.

    Where the terminal is too narrow for a row, its last columns go on in a line below.
    """
    rows = [[visible(cell, _LONGEST) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    screen = width()
    lines = []
    for row in rows:
        for number, part in enumerate(_parts(widths, screen)):
            cells = (row[column].ljust(widths[column]) for column in part)
            line = (_GAP * 2 if number else "") + _GAP.join(cells).rstrip()
            lines += [line] if screen is None else fitted(line, screen).split("\n")
    return lines


def folded_rows(
    rows: Sequence[Sequence[str]], own: int, slower: Callable[[str], float]
) -> list[Sequence[str]]:
    """Rows below their head, of which those that differ in their host alone are one.

    In a terminal; what is piped keeps a row for each host.

    Args:
        rows: the host first.
        own: a column in which equal hosts may differ: the slowest one's is shown.
        slower: how slow a cell of it is.
    """
    if width() is None:
        return list(rows)
    head, *rest = rows
    alike: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for row in rest:
        known = slower(row[own]) >= 0
        key = tuple(cell for at, cell in enumerate(row) if at and not (at == own and known))
        alike.setdefault(key, []).append(row)
    found = [head]
    for group in alike.values():
        _, *cells = max(group, key=lambda row: slower(row[own]))
        found.append((", ".join(row[0] for row in group), *cells))
    return found


def _parts(widths: Sequence[int], screen: int | None) -> list[list[int]]:
    """The columns of each line of a row."""
    parts: list[list[int]] = [[]]
    room = screen
    for column, wide in enumerate(widths):
        if room is not None and screen is not None:
            if parts[-1] and wide > room:
                parts.append([])
                room = screen - 2 * len(_GAP)
            room -= wide + len(_GAP)
        parts[-1].append(column)
    return parts

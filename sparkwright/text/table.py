"""Tables of text; rich lays out a table if a row does not fit."""

from collections.abc import Callable, Sequence

from sparkwright.text.screen import fitted, width
from sparkwright.text.visible import visible

#: Largest number of characters of a cell.
_LONGEST = 400
_GAP = 2


def columns(rows: Sequence[Sequence[str]], *, headed: bool = True) -> list[str]:
    """Render rows as lines, each column as wide as its widest cell; control characters from hosts
    are escaped.

    If the terminal is too narrow for a row, the cells continue on further lines; if the terminal is
    too narrow for the longest words of all columns, each row is a paragraph. A piped row stays on
    one line.

    Args:
        headed: whether the first row has the columns' heads.
    """
    cells = [[visible(cell, _LONGEST) for cell in row] for row in rows]
    by_column = list(zip(*cells, strict=True))
    widths = [max((*map(len, " ".join(each).split()), 0)) for each in by_column]
    whole = [max(map(len, each)) for each in by_column]
    needed = sum(whole) + _GAP * len(whole)
    room = width() or needed
    if needed <= room and all("".join(row).isascii() for row in cells):
        return [(" " * _GAP).join(map(str.ljust, row, whole)).rstrip() for row in cells]
    # rich takes 40 ms to import. It is needed only if a row has further lines, or a character may
    # be two columns wide.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    fits = sum(widths) + _GAP * (len(widths) - 1) <= room
    if headed and not fits:
        return [line for row in cells[1:] for line in _paragraph(cells[0], row, room)]
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    for longest in widths:
        table.add_column(overflow="fold", min_width=longest if fits else None)
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(width=room, color_system=None)
    with console.capture() as shown:
        console.print(table)
    return [line.rstrip() for line in shown.get().splitlines()]


def _paragraph(heads: Sequence[str], row: Sequence[str], room: int) -> list[str]:
    """Render a row as lines of cells, each with its head; a cell is broken only at spaces."""
    first, *others = (f"{head} {cell}" for head, cell in zip(heads, row, strict=True))
    lines = [first]
    for field in others:
        if len(f"{lines[-1]}   {field}") <= room:
            lines[-1] += f"   {field}"
        else:
            lines.append(f"  {field}")
    return [part for line in lines for part in fitted(line, room).split("\n")]


def folded_rows(
    rows: Sequence[Sequence[str]], own: int, slower: Callable[[str], float]
) -> list[Sequence[str]]:
    """Merge rows that differ only in their host.

    Rows are merged only in a terminal; piped output keeps a row for each host.

    Args:
        rows: the heads, then rows whose first cell is the host.
        own: a column in which equal hosts may differ: the slowest host's cell is shown.
        slower: function that returns a cell's slowness, for comparison.
    """
    if width() is None:
        return list(rows)
    head, *rest = rows
    alike: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for row in rest:
        comparable = slower(row[own]) >= 0
        key = tuple(cell for at, cell in enumerate(row) if at and not (at == own and comparable))
        alike.setdefault(key, []).append(row)
    folded = [head]
    for group in alike.values():
        _, *cells = max(group, key=lambda row: slower(row[own]))
        folded.append((", ".join(row[0] for row in group), *cells))
    return folded

"""Text as wide as the terminal: lines go on at a space, below where they began.

What is piped stays as it is, a line a line: programs read it, and have no width. COLUMNS goes
before the terminal's own width.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Seen = TypeVar("_Seen")

#: Colours take no room.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: A line's own indentation, and a label or a mark that what follows stands beside.
_BEGINNING = re.compile(r"( *)((?:[a-z]{4,9}: +|- |\d+\. )?)")
#: Narrower than this nothing is readable.
_NARROWEST = 40


def width() -> int | None:
    """Columns of the terminal; None where standard output is none."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(_NARROWEST, int(given))
    try:
        return max(_NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):
        return None


def length(text: str) -> int:
    """Columns that a line takes."""
    return len(_COLOUR.sub("", text))


def fitted(text: str, columns: int | None = None) -> str:
    """Text with every line that is too long broken at spaces; a word is never broken.

    Args:
        columns: instead of the terminal's.
    """
    columns = columns or width()
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, columns))


def _broken(line: str, columns: int) -> list[str]:
    if length(line) <= columns:
        return [line]
    begins = _BEGINNING.match(_COLOUR.sub("", line))
    assert begins is not None, "it matches nothing, too"
    hanging = " " * (len(begins[0]) if begins[2] else len(begins[1]) + 2)
    found = [begins[1]]
    for number, word in enumerate(re.split(r"( +)", line[len(begins[1]) :])):
        if number % 2:
            space = word
        elif number == 0:
            found[-1] += word
        elif length(found[-1]) + len(space) + length(word) <= columns:
            found[-1] += space + word
        else:
            found.append(hanging + word)
    return found


def folded(
    each: Iterable[tuple[str, _Seen]], same: Callable[[_Seen], Hashable] = repr
) -> list[tuple[list[str], _Seen]]:
    """What equal hosts have, once: their names, and that of the first.

    Args:
        same: what must be equal; all of it by default.
    """
    found: dict[Hashable, tuple[list[str], _Seen]] = {}
    for host, one in each:
        found.setdefault(same(one), ([], one))[0].append(host)
    return list(found.values())

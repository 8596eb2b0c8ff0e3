"""Text as wide as the terminal: lines continue at a space, with their indentation.

Piped text stays unchanged, since programs read it line by line. COLUMNS takes precedence over the
terminal's own width.
"""

import os
import re
import sys
import textwrap
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Seen = TypeVar("_Seen")

#: Escape sequences of colours, which take no width.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: A line's own indentation, and a label or a mark to the left of the text.
_BEGINNING = re.compile(r"( *)((?:[a-z]{4,9}: +|- |\d+\. )?)")
#: Smallest width in columns: a narrower screen is unreadable.
_NARROWEST = 40


def width() -> int | None:
    """Return the columns of the terminal; None if standard output is not a terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(_NARROWEST, int(given))
    try:
        return max(_NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):
        return None


def fitted(text: str, columns: int | None = None) -> str:
    """Break long lines of a text at spaces; a word is never broken.

    Args:
        columns: width, instead of the terminal's width.
    """
    columns = columns or width()
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, columns))


def _broken(line: str, columns: int) -> list[str]:
    bare = _COLOUR.sub("", line)
    if len(bare) <= columns:
        return [line]
    begins = _BEGINNING.match(bare)
    assert begins is not None, "the pattern matches an empty text, too"
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * (len(begins[0]) if begins[2] else len(begins[1]) + 2),
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def folded(
    each: Iterable[tuple[str, _Seen]], same: Callable[[_Seen], Hashable] = repr
) -> list[tuple[list[str], _Seen]]:
    """Merge hosts with equal values: their names, with the first host's value.

    Args:
        same: function that returns the part that must be equal; by default the whole value.
    """
    groups: dict[Hashable, tuple[list[str], _Seen]] = {}
    for host, seen in each:
        groups.setdefault(same(seen), ([], seen))[0].append(host)
    return list(groups.values())

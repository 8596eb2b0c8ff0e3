"""Limits of a document's size and depth, for every format.

Parsers and printers use a stack frame for each level: without limits, 100,000 brackets crash the
process, and a few lines of aliases become gigabytes.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

#: Largest size of a file, in bytes; the largest files of users are lock files, with a line for each
#: file of a model.
LARGEST = 8 * 1024**2
#: Largest depth of nested lists and mappings.
DEEPEST = 40
#: Largest number of values in a document; a value that an alias repeats counts each time.
MOST = 200_000
#: Largest number of characters of a text.
LONGEST = 1_000_000
_INTEGER = 2**63


class Unusable(Exception):
    """A document can't be used.

    Attributes:
        fault: text of the fault.
        remedy: step that repairs the document.
        line: line of the fault, from 1; None if the fault concerns the whole document.
    """

    def __init__(self, problem: str, remedy: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.fault, self.remedy, self.line = problem, remedy, line

    def place(self, file: str) -> str:
        """Return the file, and the line if known."""
        return f"{file}: line {self.line}" if self.line else file


def bounded(value: Any, most: int = MOST) -> None:
    """Traverse lists and mappings of at most this many values, without recursion.

    Raises:
        Unusable: a value is too deep, too large, or a number that a file can't hold.
    """
    count, waiting = 0, [iter((value,))]
    while waiting:
        for item in waiting[-1]:
            count += 1
            if fault := _fault(item) or (count > most and f"more than {most} values"):
                raise Unusable(fault, "write fewer or smaller values")
            if inner := _inner(item):
                if len(waiting) > DEEPEST:
                    problem = f"more than {DEEPEST} nested lists and mappings"
                    raise Unusable(problem, "use fewer nested levels")
                waiting.append(inner)
                break
        else:
            waiting.pop()


def _inner(value: Any) -> Iterator[Any] | None:
    if isinstance(value, Mapping):
        return (item for pair in value.items() for item in pair)
    return iter(value) if isinstance(value, list | tuple | set | frozenset) else None


def _fault(value: Any) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number"
    if isinstance(value, int) and not -_INTEGER <= value < _INTEGER:
        return "a whole number of more than 64 bits"
    if isinstance(value, str | bytes) and len(value) > LONGEST:
        return f"a text of {len(value)} characters; {LONGEST} are allowed"
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        return "a text with half of a surrogate pair, which UTF-8 can't encode"
    return None

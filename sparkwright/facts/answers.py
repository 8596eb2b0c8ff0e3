"""Parse hosts' answers into records; only this module parses answers.

A host may be broken, of another version, or hostile. The size and depth of a host's answer are
limited before parsing, and types and ranges are checked afterwards. Any mismatch raises
``HostError``, which fails only that host.
"""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn, TypeVar

from sparkwright.facts.programs import BEGIN, END
from sparkwright.host.lib.records import Malformed, decode
from sparkwright.text.visible import cut

_Answer = TypeVar("_Answer")

#: Largest number of characters of an answer: the longest genuine answer, of the doctor with all
#: logs, has about two million.
MOST_TEXT = 8 << 20
#: Levels of nested lists: genuine answers have about eight levels.
MOST_DEPTH = 64
#: Largest number of lines of a host's error output, and of characters of each line.
_LINES, _WIDTH = 40, 600
#: A string, or a bracket outside of any string. An unterminated string extends to the end of the
#: text, so that each character is read only once.
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_LOGIN = (
    "no answer: the host's login ends before the program, or runs another program (check "
    ".bashrc and /etc/profile.d)"
)
_REMEDY = (
    "is another version of sparkwright at work on this host? If not, do not trust the host: "
    "inspect the host before the next run, or take it out of the inventory"
)


class HostError(Exception):
    """The host did not answer a request: lost connection, deadline, a failing program, or no valid
    answer. The error's text may quote the host, and has a limited length.
    """

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        more = [f"… ({len(lines) - _LINES} lines more)"] if len(lines) > _LINES else []
        super().__init__("\n".join([cut(line, _WIDTH) for line in lines[:_LINES]] + more))


def parse(label: str, lines: Sequence[str], answer: type[_Answer]) -> _Answer:
    """Read a program's answer from its standard output.

    Raises:
        HostError: the output has no valid answer.
    """
    if sum(map(len, lines)) > MOST_TEXT:
        invalid(label, f"it has more than {MOST_TEXT >> 20} MiB")
    text = _between(label, lines)
    if _is_deep(text):
        invalid(label, f"more than {MOST_DEPTH} nested lists")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        invalid(label, "it is not JSON")
    return typed(label, answer, data)


def _between(label: str, lines: Sequence[str]) -> str:
    """Return the text between the marks of the last answer; a login's output is ignored.

    Only the last answer counts: a program may have failed as root in the middle of its answer, and
    then run again.
    """
    if BEGIN not in lines:
        raise HostError(f"{label}: {_LOGIN}")
    begin = max(number for number, line in enumerate(lines) if line == BEGIN) + 1
    if END not in lines[begin:]:
        invalid(label, "it does not end")
    return "\n".join(lines[begin : lines.index(END, begin)])


def typed(label: str, kind: type[_Answer], data: object) -> _Answer:
    """Make a record from a host's data.

    Raises:
        HostError: the data does not fit; the text has the field, its value and the expected type.
    """
    try:
        return decode(kind, data)
    except Malformed as error:
        invalid(label, str(error))


def of_each(label: str, expected: Collection[str], answer: dict[str, Any]) -> None:
    """Check that an answer by name covers exactly the names of the request.

    Raises:
        HostError: names are missing or unexpected; the text has the names.
    """
    if missing := [name for name in expected if name not in answer]:
        invalid(label, f"there is no answer about {', '.join(missing)}")
    if strange := [name for name in answer if name not in expected]:
        invalid(label, f"{strange[0][:60]!r} was not requested")


def invalid(label: str, why: str) -> NoReturn:
    """Raise a HostError that describes the difference between an answer and the expected record."""
    raise HostError(f"{label}: not a valid answer: {why} ({_REMEDY})")


def _is_deep(text: str) -> bool:
    depth = 0
    for match in _BRACKETS.finditer(text):
        first = match[0][0]
        if first in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                return True
        elif first != '"':
            depth -= 1
    return False

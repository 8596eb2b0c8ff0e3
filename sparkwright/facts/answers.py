"""Hosts' answers, read into records: here and nowhere else.

A host may be broken, of another version, or hostile. Its answer is bounded in size and depth before
it is parsed, and in type and range after; what is not as the record says is a ``HostError``: it
fails that host alone.
"""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn, TypeVar

from sparkwright.facts.programs import BEGIN, END
from sparkwright.host.lib.records import Malformed, decode
from sparkwright.text.visible import cut

_Answer = TypeVar("_Answer")

#: Characters of an answer: the longest honest one, a doctor's with all logs, has about two million.
MOST_TEXT = 8 << 20
#: Lists within lists: honest answers have about eight.
MOST_DEPTH = 64
#: Lines, and characters of each, of what a host says when something fails.
_LINES, _WIDTH = 40, 600
#: A string, or a bracket outside of any. A string that does not end is one to the end of the text:
#: each character is looked at once.
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_LOGIN = (
    "no answer: the host's login ends before the program, or runs another one instead (check "
    ".bashrc and /etc/profile.d)"
)
_REMEDY = (
    "is another version of sparkwright at work on this host? If not, do not trust it: look at the "
    "host itself before the next run, or take it out of the inventory"
)


class HostError(Exception):
    """The host did not answer a question: lost connection, deadline, a failing program, or no valid
    answer. Its text may hold the host's words, and is bounded."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        more = [f"… ({len(lines) - _LINES} lines more)"] if len(lines) > _LINES else []
        super().__init__("\n".join([cut(line, _WIDTH) for line in lines[:_LINES]] + more))


def parse(label: str, lines: Sequence[str], answer: type[_Answer]) -> _Answer:
    """A program's answer from its standard output.

    Raises:
        HostError: when it is not such an answer.
    """
    if sum(map(len, lines)) > MOST_TEXT:
        invalid(label, f"at most {MOST_TEXT >> 20} MiB are expected")
    text = _between(label, lines)
    if _is_deep(text):
        invalid(label, f"lists in more than {MOST_DEPTH} lists")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        invalid(label, "it is not JSON")
    return typed(label, answer, data)


def _between(label: str, lines: Sequence[str]) -> str:
    """Text between the marks of the last answer; the output of a login is ignored.

    The last one: a program may have failed as root in the middle of its answer, and run again.
    """
    if BEGIN not in lines:
        raise HostError(f"{label}: {_LOGIN}")
    begin = max(number for number, line in enumerate(lines) if line == BEGIN) + 1
    if END not in lines[begin:]:
        invalid(label, "it does not end")
    return "\n".join(lines[begin : lines.index(END, begin)])


def typed(label: str, kind: type[_Answer], data: object) -> _Answer:
    """A contract from data of a host.

    Raises:
        HostError: naming the field, what it is, and what is expected.
    """
    try:
        return decode(kind, data)
    except Malformed as error:
        invalid(label, str(error))


def of_each(label: str, expected: Collection[str], answer: dict[str, Any]) -> None:
    """An answer by name must cover exactly the names of the request.

    Raises:
        HostError: naming what is too many or too few.
    """
    if missing := [name for name in expected if name not in answer]:
        invalid(label, f"nothing is said of {', '.join(missing)}")
    if strange := [name for name in answer if name not in expected]:
        invalid(label, f"{strange[0][:60]!r} was not asked for")


def invalid(label: str, why: str) -> NoReturn:
    """Say what of an answer is not as expected."""
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

"""Output of units, from systemd's journal."""

import re
import textwrap
from collections.abc import Iterable

from sparkwright.host.lib.processes import run

#: Pattern of an error: a class name, or the form of argparse, pydantic and llama-server. An error
#: that a line of code raises or a message quotes does not match.
_ERROR = re.compile(
    r"(?<![\w.`'\"])(?:(?:[\w.]*(?:Error|Exception)|error): |Value error, |error while handling ).+"
)
#: Time and level at the start of llama-server's own lines.
_LEVEL = re.compile(r"\d{1,9}(?:\.\d{1,3}){3} E (.+)")
#: Compose erases the previous line before it prints a new line, even without a terminal.
ERASE = "\x1b[2K"
#: Errors of vLLM's API server and of llama-server that only point to an earlier error.
_POINTERS = (
    "Engine core initialization failed", "EngineDeadError: ", "failed to load model",
    "failed to create", "exiting due to", "trying to fit params",
)  # fmt: skip


def last(unit: str, count: int = 15, *, since: str | None = None) -> list[str]:
    """Return a unit's last lines; empty if the journal does not answer."""
    arguments = ["-u", unit, *(["--since", since] if since else []), "-n", str(count)]
    text = run("journalctl", *arguments, "-o", "cat", "--no-pager", timeout=10).out
    return text.replace(ERASE, "").splitlines()


def error(unit: str) -> str | None:
    """Return the last error that a unit's log names; None without an error."""
    return cause(last(unit, 400))


def cause(lines: Iterable[str]) -> str | None:
    """Return an engine's last error, without the line's prefix; None without an error."""
    matches = (_LEVEL.match(line) or _ERROR.search(line) for line in lines)
    errors = [match[match.re.groups] for match in matches if match]
    own = [text for text in errors if not any(pointer in text for pointer in _POINTERS)]
    causes = own or errors
    return textwrap.shorten(causes[-1], 240, placeholder=" …") if causes else None

"""Output of units, from systemd's journal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from sparkwright.host.lib.processes import run

#: An error by its own name, or as argparse, pydantic and llama-server have it; neither one that is
#: raised in a line of code nor one that is quoted.
_ERROR = re.compile(
    r"(?<![\w.`'\"])(?:(?:[\w.]*(?:Error|Exception)|error): |Value error, |error while handling ).+"
)
#: llama-server's own lines have a time and a level.
_LEVEL = re.compile(r"\d{1,9}(?:\.\d{1,3}){3} E (.+)")
#: Compose erases the line before each one that it prints, also without a terminal.
ERASE = "\x1b[2K"
#: Errors that only point to the one before them: of vLLM's API server, and of llama-server.
_POINTERS = (
    "Engine core initialization failed", "EngineDeadError: ", "failed to load model",
    "failed to create", "exiting due to", "trying to fit params",
)  # fmt: skip


def last(unit: str, count: int = 15, *, since: str | None = None) -> list[str]:
    """A unit's last lines; none when the journal does not answer."""
    arguments = ["-u", unit, *(["--since", since] if since else []), "-n", str(count)]
    text = run("journalctl", *arguments, "-o", "cat", "--no-pager", timeout=10).out
    return text.replace(ERASE, "").splitlines()


def error(unit: str) -> str | None:
    """The last error that a unit names; None without one."""
    return cause(last(unit, 400))


def cause(lines: Iterable[str]) -> str | None:
    """The last error that an engine's lines name, from its name on; None without one."""
    errors = []
    for line in lines:
        if match := _LEVEL.match(line) or _ERROR.search(line):
            errors.append(match[match.re.groups])
    causes = [
        text for text in errors if not any(pointer in text for pointer in _POINTERS)
    ] or errors
    return textwrap.shorten(causes[-1], 240, placeholder=" …") if causes else None

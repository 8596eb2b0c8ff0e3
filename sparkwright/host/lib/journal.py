"""What units have said, from systemd's journal."""

from __future__ import annotations

import re
import textwrap

from sparkwright.host.lib.processes import run

#: What a line has before the error's own name.
_FROM_ERROR = re.compile(r"^.*?(?=[\w.]*Error\b:)")


def last(unit: str, count: int = 15, *, since: str | None = None) -> list[str]:
    """A unit's last lines; none when the journal does not answer."""
    words = ["-u", unit, *(["--since", since] if since else []), "-n", str(count)]
    return run("journalctl", *words, "-o", "cat", "--no-pager", timeout=10).out.splitlines()


def error(unit: str) -> str | None:
    """The last line that names an error, from the error's name on; None without one."""
    lines = [line.strip() for line in last(unit, 200) if "Error" in line]
    # vLLM's API server ends with one that only points to the engine's.
    lines = [line for line in lines if "Engine core initialization failed" not in line] or lines
    if not lines:
        return None
    return textwrap.shorten(_FROM_ERROR.sub("", lines[-1]), 240, placeholder=" …")

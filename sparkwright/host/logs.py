"""Logs of this host's services, from systemd's journal. Changes nothing; runs as root."""

from __future__ import annotations

import re

from sparkwright.host.lib import documents, homes
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.journal import ERASE
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class LogsRequest:
    """Which lines.

    Attributes:
        services: names, those among them that are here; None for every one.
        lines: at most, the last ones.
        since: as journalctl takes it: ``-600s``, ``@1764000000``; None for any time.
        hidden: a regular expression of lines that are left out; empty for none.
    """

    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    lines: int = 100
    since: str | None = None
    hidden: str = ""


@dataclass(frozen=True)
class LogLine:
    """Line of a log; ``at`` in seconds since the epoch, by the host's clock."""

    at: float
    service: str
    text: str


@dataclass(frozen=True)
class LogsAnswer:
    """The lines, oldest first.

    Attributes:
        service_names: of every service of the host.
        cursor: of the last line, as ``--after-cursor`` takes it; None without one.
        fault: what journalctl says where it fails.
    """

    service_names: tuple[str, ...]
    lines: tuple[LogLine, ...] = ()
    cursor: str | None = None
    fault: str = ""


#: Characters of one line, and of all of them: an answer is bounded.
_WIDTH, _MOST = 4000, 4 << 20
#: Entries of the journal that are searched at most for lines that are not hidden.
_SEARCHED = 20_000


def main(request: LogsRequest) -> LogsAnswer:
    """The last lines."""
    every = homes.services(request.services_root)
    names = tuple(every)
    units = {homes.unit(name): name for name in homes.chosen(request.services, every)}
    if not units:
        return LogsAnswer(names)
    hidden, count = re.compile(request.hidden or "(?!)"), request.lines
    while True:
        arguments = ["--no-pager", "--quiet", "--all", "--output=json", f"--lines={count}"]
        arguments += [f"--since={request.since}"] if request.since else []
        journal = run("journalctl", *arguments, *(f"--unit={unit}" for unit in units), timeout=60)
        if not journal.ok:
            return LogsAnswer(names, fault=journal.message or "journalctl fails without a word")
        entries = documents.objects(journal.out)
        logged = [line for entry in entries for line in lines_of(entry, units)]
        lines = [line for line in logged if not hidden.search(line.text)]
        # Checks come every other second: the last lines of another kind may lie far behind them.
        if len(lines) >= request.lines or len(entries) < count or count >= _SEARCHED:
            break
        count = min(8 * count, _SEARCHED)
    cursor = str(entries[-1].get("__CURSOR", "")) if entries else ""
    kept = lines[-request.lines :] if request.lines else []
    return LogsAnswer(names, _last(kept), cursor=cursor or None)


def lines_of(entry: dict[str, Any], units: dict[str, str]) -> list[LogLine]:
    """The lines of a journal's entry, as ``--output=json`` has it, of one of these units."""
    message = entry.get("MESSAGE")
    try:
        if isinstance(message, list):  # bytes that are no text
            message = bytes(message).decode(errors="replace")
        at = int(entry.get("__REALTIME_TIMESTAMP", 0)) / 1e6
    except (TypeError, ValueError):
        return []
    # What systemd says of a unit itself names it otherwise.
    unit = next(
        (name for key in ("_SYSTEMD_UNIT", "UNIT") if (name := entry.get(key)) in units), ""
    )
    if not isinstance(message, str):
        return []
    lines = message.replace(ERASE, "").splitlines()
    return [LogLine(at, units.get(unit, "?"), line[:_WIDTH]) for line in lines]


def _last(lines: list[LogLine]) -> tuple[LogLine, ...]:
    """As many of the last lines as an answer has room for."""
    size = 0
    for number, line in enumerate(reversed(lines)):
        size += len(line.text) + 80
        if size > _MOST:
            return tuple(lines[len(lines) - number :])
    return tuple(lines)

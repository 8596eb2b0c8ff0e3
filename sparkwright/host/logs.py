"""Logs of this host's services, from systemd's journal. The program runs as root, and changes
nothing.
"""

import re

from sparkwright.host.lib import documents, homes, journal, records
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.processes import run


@records.dataclass(frozen=True)
class LogsRequest:
    """Request for log lines.

    Attributes:
        services: names; names of other hosts' services are ignored; None for all services.
        lines: largest number of lines; the last lines are returned.
        since: start in journalctl's syntax: ``-600s``, ``@1764000000``; None for any time.
        hidden: regular expression of lines to leave out; empty for none.
    """

    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    lines: int = 100
    since: str | None = None
    hidden: str = ""


@records.dataclass(frozen=True)
class LogLine:
    """Line of a log; ``at`` is in seconds since the epoch, by the host's clock."""

    at: float
    service: str
    text: str


@records.dataclass(frozen=True)
class LogsAnswer:
    """Lines of a log, oldest first.

    Attributes:
        service_names: names of all services of the host.
        cursor: cursor of the last line, for ``--after-cursor``; None without a line.
        fault: journalctl's error message; empty after a success.
    """

    service_names: tuple[str, ...]
    lines: tuple[LogLine, ...] = ()
    cursor: str | None = None
    fault: str = ""


#: Largest number of characters of one line, and of all lines of an answer.
_WIDTH, _MOST = 4000, 4 << 20
#: Largest number of journal entries to search for lines that are not hidden.
_SEARCHED = 20_000


def main(request: LogsRequest) -> LogsAnswer:
    """Return the last lines."""
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
            return LogsAnswer(names, fault=journal.message or "journalctl fails without a message")
        entries = documents.objects(journal.out)
        logged = [line for entry in entries for line in lines_of(entry, units)]
        lines = [line for line in logged if not hidden.search(line.text)]
        # Checks are logged every other second, so other lines may be far back.
        if len(lines) >= request.lines or len(entries) < count or count >= _SEARCHED:
            break
        count = min(8 * count, _SEARCHED)
    cursor = str(entries[-1].get("__CURSOR", "")) if entries else ""
    kept = lines[-request.lines :] if request.lines else []
    return LogsAnswer(names, _last(kept), cursor=cursor or None)


def lines_of(entry: dict[str, Any], units: dict[str, str]) -> list[LogLine]:
    """Return the lines of a journal entry (``--output=json``) if it belongs to one of these
    units.
    """
    message = entry.get("MESSAGE")
    try:
        if isinstance(message, list):  # bytes that are not UTF-8
            message = bytes(message).decode(errors="replace")
        at = int(entry.get("__REALTIME_TIMESTAMP", 0)) / 1e6
    except (TypeError, ValueError):
        return []
    # systemd's own messages name the unit in another field.
    unit = next(
        (name for key in ("_SYSTEMD_UNIT", "UNIT") if (name := entry.get(key)) in units), ""
    )
    if not isinstance(message, str):
        return []
    lines = message.replace(journal.ERASE, "").splitlines()
    return [LogLine(at, units.get(unit, "?"), line[:_WIDTH]) for line in lines]


def _last(lines: list[LogLine]) -> tuple[LogLine, ...]:
    """Return the last lines, as many as fit into an answer."""
    size = 0
    for number, line in enumerate(reversed(lines)):
        size += len(line.text) + 80
        if size > _MOST:
            return tuple(lines[len(lines) - number :])
    return tuple(lines)

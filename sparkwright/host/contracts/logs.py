"""What services have said, from systemd's journal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogsRequest:
    """Which lines.

    Attributes:
        services: names, those among them that are here; None for every one.
        lines: at most, the last ones.
        since: as journalctl takes it: ``-600s``, ``@1764000000``; None for any time.
    """

    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    lines: int = 100
    since: str | None = None


@dataclass(frozen=True)
class LogLine:
    """One line; ``at`` in seconds since the epoch, by the host's clock."""

    at: float
    service: str
    text: str


@dataclass(frozen=True)
class LogsAnswer:
    """The lines, oldest first.

    Attributes:
        known: every service of the host.
        cursor: of the last line, as ``--after-cursor`` takes it; None without one.
        wrong: what journalctl says where it fails.
    """

    known: tuple[str, ...]
    lines: tuple[LogLine, ...] = ()
    cursor: str | None = None
    wrong: str = ""

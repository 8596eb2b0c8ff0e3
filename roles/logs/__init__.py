"""Logs: what services have said, for ``sparkwright logs``. Changes nothing."""

from __future__ import annotations

from functools import partial

from sparkwright.run.asked import ask_each
from sparkwright.run.questions import logged


def logs(
    services: str | None = None,
    lines: int | str = 100,
    since: str | None = None,
    answers: str | None = None,
    planless: bool = False,
) -> None:
    """The last lines of each host's services.

    Args:
        services: names with commas between them; every one without.
        since: as journalctl takes it.
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    named = tuple(services.split(",")) if services else None
    ask_each("Services: logs", partial(logged, services=named, lines=int(lines), since=since))

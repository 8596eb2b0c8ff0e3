"""Every host's deployment, read from the hosts."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from sparkwright.cli.hosts import ask_hosts
from sparkwright.report.status import Deployment, deployment, switches


def deployments(
    inventory: Path,
    limit: tuple[str, ...],
    overrides: tuple[str, ...],
    *,
    planless: bool = True,
) -> tuple[dict[str, Deployment], list[str]]:
    """By host; and the hosts that did not answer, which are named on standard error.

    The history is kept for the fleet's page.

    Args:
        planless: as for ``ask_hosts``.
    """
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.status.status", planless=planless
    )
    found = {name: deployment(answer) for name, answer in answers.items()}
    if found:
        kept = Path(".sparkwright/status.json")
        with suppress(OSError):  # a full disk here hides nothing of what the hosts say
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_text(json.dumps({"history": switches(found)}) + "\n", encoding="utf-8")
    return found, silent

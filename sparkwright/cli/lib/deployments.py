"""Every host's deployment, read from the hosts."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from sparkwright.checks.service.diagnose import watch_findings
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.findings.render import data
from sparkwright.results.status import Deployment, deployment, switches


def deployments(
    inventory: Path,
    limit: tuple[str, ...],
    overrides: tuple[str, ...],
    *,
    planless: bool = True,
) -> tuple[dict[str, Deployment], list[str]]:
    """By host; and the hosts that did not answer, which are named on standard error.

    History and the watch's findings are kept for the fleet's page.

    Args:
        planless: as for ``ask_hosts``.
    """
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.status.status", planless=planless
    )
    found = {name: deployment(answer) for name, answer in answers.items()}
    if found:
        kept = Path(".sparkwright/status.json")
        watched = [
            finding
            for host, seen in found.items()
            for finding in watch_findings(host, seen.watch, seen.now)
        ]
        record = {"history": switches(found), "findings": data(watched)}
        with suppress(OSError):  # a full disk here hides nothing of what the hosts say
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return found, silent

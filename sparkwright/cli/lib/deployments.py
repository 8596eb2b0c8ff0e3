"""Every host's deployment, read from the hosts."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from sparkwright.checks.service.diagnose import watch_findings
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.findings.render import data
from sparkwright.results.answers import Answers
from sparkwright.results.status import Deployment, switches


def deployments(hosts: Hosts, *, planless: bool = True) -> Answers[Deployment]:
    """Ask the hosts; history and the watch's findings are kept for the fleet's page.

    Args:
        planless: as for ``Hosts.ask``.
    """
    from sparkwright.run import questions

    answers = hosts.ask(questions.deployment, planless=planless)
    deployments = answers.answers
    if deployments:
        kept = Path(".sparkwright/status.json")
        watched = [
            finding
            for host, deployment in deployments.items()
            for finding in watch_findings(host, deployment.watch, deployment.now)
        ]
        record = {"history": switches(deployments), "findings": data(watched)}
        with suppress(OSError):  # a full disk here hides nothing of what the hosts say
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return answers

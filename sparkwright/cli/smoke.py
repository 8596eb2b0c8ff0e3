"""``sparkwright smoke``: tests everything that every host's services offer. Runs pyinfra."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from sparkwright.checks.smoke.verdict import render, save, verdicts
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.findings import format_option, paint, print_findings
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo


@click.command("smoke")
@hosts_argument
@format_option
def command(inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], form: str) -> None:
    """Ask every service for everything that its recipe promises.

    Names, key, chat, stream, thinking, tools, JSON, images, long prompts, the context's end,
    drafts, cached prefixes, and as many requests at once as it lets in. It takes minutes and loads
    the services; nothing is changed. Results also lie in .sparkwright/smoke/. Exit code 1 when a
    check fails or a host does not answer.
    """
    echo("Asking for real answers; this takes some minutes.", err=True)
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.smoke.deep.smoke", planless=True
    )
    now = datetime.now(UTC)
    found = [one for host, answer in answers.items() for one in verdicts(host, answer, now)]
    save(found)
    if form == "json":  # with what passed
        print_json([one.model_dump() for one in found])
    else:
        findings = [finding for one in found for finding in one.findings]
        print_findings(findings, form, render(found, paint) if found else "")
    sys.exit(int(bool(silent) or not found or any(one.findings for one in found)))

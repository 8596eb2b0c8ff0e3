"""``sparkwright doctor``: what is wrong with hosts and services, why, and what helps."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.connecting import hosts_argument
from sparkwright.cli.findings import format_option, paint, print_findings
from sparkwright.cli.hosts import ask_hosts
from sparkwright.doctor.diagnose import diagnose_all, render
from sparkwright.doctor.facts import facts


@click.command("doctor")
@hosts_argument
@format_option
def command(inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], form: str) -> None:
    """Examine every host: symptom, likely reason, remedy, and who says so. Changes nothing.

    Takes about ten seconds, half a minute where a service seems to hang. Runs pyinfra. Exit code 0
    only when every host answered and nothing was found.
    """
    answers, silent = ask_hosts(inventory, limit, overrides, "roles.doctor.doctor", planless=True)
    found = diagnose_all({name: facts(answer) for name, answer in answers.items()})
    print_findings([one for each in found.values() for one in each], form, render(found, paint))
    sys.exit(int(bool(silent) or not found or any(found.values())))

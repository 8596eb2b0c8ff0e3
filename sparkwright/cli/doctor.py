"""``sparkwright doctor``: what is wrong with hosts and services, why, and what helps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from sparkwright.checks.fabric.groups import answered, on_connectx
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.checks.service.diagnose import diagnose_all, render
from sparkwright.checks.service.facts import facts
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.findings import format_option, paint, print_findings
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.config.inventory import read_inventory
from sparkwright.findings.finding import Finding, errors_first
from sparkwright.findings.user_error import UserError


@click.command("doctor")
@hosts_argument
@format_option
def command(inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], form: str) -> None:
    """Examine every host: symptom, likely reason, remedy, and who says so. Changes nothing.

    Takes about ten seconds, half a minute where a service seems to hang; of a cluster on ConnectX-7
    its fabric is judged, too. Runs pyinfra. Exit code 0
    only when every host answered and nothing was found.
    """
    answers, silent = ask_hosts(inventory, limit, overrides, "roles.doctor.doctor", planless=True)
    found = diagnose_all({name: facts(answer) for name, answer in answers.items()})
    for name, one in _of_fabrics(inventory, overrides, tuple(answers)):
        found[name] = errors_first([*found[name], one])
    print_findings([one for each in found.values() for one in each], form, render(found, paint))
    sys.exit(int(bool(silent) or not found or any(found.values())))


def _of_fabrics(
    inventory: Path, overrides: tuple[str, ...], hosts: tuple[str, ...]
) -> Iterator[tuple[str, Finding]]:
    """Host and finding: what is wrong with the ConnectX-7 of hosts that serve together over it."""
    with suppress(UserError):  # what can't be read was told when the hosts were asked
        data = {one.name: one.data for one in read_inventory(inventory, overrides)}
        joined = tuple(one for one in on_connectx(data) if one in hosts)
        if joined:
            answers, _ = ask_hosts(
                inventory, joined, overrides, "roles.fabric.looked", planless=True
            )
            for fabric in answered(answers):
                head = next(iter(fabric.states))
                yield from ((one.subject.host or head, one) for one in CHECKS.findings(fabric))

"""``sparkwright doctor``: what ails hosts and services, why, and what helps. Runs pyinfra."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from sparkwright.cli.hosts import ask_hosts
from sparkwright.cli.options import inventory_argument, json_option, print_json
from sparkwright.doctor import diagnose, facts, render


@click.command("doctor")
@inventory_argument
@json_option
def command(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], as_json: bool
) -> None:
    """Examine every host: symptom, likely cause, remedy, and who says so. Changes nothing.

    Takes about ten seconds, half a minute where a service seems to hang. Exit code 0 only when
    every host answered and nothing ails any.
    """
    with_all = ask_hosts(inventory, limit, overrides, "roles.doctor.doctor")
    found = {name: diagnose(facts(answer)) for name, answer in with_all.items()}
    if as_json:
        print_json({name: [asdict(one) for one in ills] for name, ills in found.items()})
    elif found:
        click.echo(render(found))
    sys.exit(int(not found or any(found.values())))

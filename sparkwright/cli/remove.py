"""``sparkwright remove``: leave the hosts as they were found. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.confirming import confirm, hosts_meant, yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.text.visible import visible


@click.command("remove")
@hosts_argument
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.services,
    help="Remove only this service (repeatable).",
)
@click.option("--weights", is_flag=True, help="Remove the models, too.")
@click.option("--bootstrap", is_flag=True, help="Undo what bootstrap did, too.")
@yes_option
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    services: tuple[str, ...],
    weights: bool,
    bootstrap: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Stop and remove services, units, releases and images; weights on request.

    Containers that were taken over from an installation by hand are started again. Exit code 0
    only when every host answered.
    """
    if services and bootstrap:
        raise click.UsageError("--bootstrap goes with everything, not with --service")
    what = f"service {', '.join(services)}" if services else "everything of sparkwright's"
    confirm(f"Remove {what} from {hosts_meant(inventory, limit)}?", yes=yes, dry=False)
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.removal.removed",
        planless=True,
        services=",".join(services) or None, weights=weights, bootstrap=bootstrap or None,
    )  # fmt: skip
    if as_json:
        print_json(answers)
    for name, answer in {} if as_json else answers.items():
        echo(f"{name}: removed {visible(', '.join(answer['done']) or 'nothing')}")
        for line in answer["left"]:
            echo(f"{name}: left {visible(line)}")
    if silent:
        echo(f"{', '.join(silent)}: nothing was removed; run this again when they can be "
                   "reached", err=True)  # fmt: skip
    sys.exit(int(bool(silent) or not answers))

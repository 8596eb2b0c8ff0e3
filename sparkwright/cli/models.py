"""``sparkwright models``: what lies on the hosts, and what of it can go. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib.confirming import confirm, dry_option, hosts_meant, yes_option
from sparkwright.cli.lib.connecting import connection_options, hosts_argument, pyinfra_json_option
from sparkwright.cli.lib.hosts import ask_hosts, become, command_line
from sparkwright.cli.lib.options import json_option, limit_option, optional_inventory, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.results.disk_usage import holdings, render


@click.group("models")
def command() -> None:
    """Models and images on the hosts: list, prune."""


@command.command("list")
@hosts_argument
@json_option
def list_command(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], as_json: bool
) -> None:
    """List models, images and unfinished fetches with their sizes, and who needs them."""
    _show(inventory, overrides, limit, as_json=as_json, pruning=False)


@command.command("prune")
@hosts_argument
@json_option
@dry_option
@yes_option
def prune_command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    as_json: bool,
    dry: bool,
    yes: bool,
) -> None:
    """Remove what neither the plan nor a kept release needs (see keep_releases).

    Directories without a receipt are never removed; while the plan is broken, no model and no image
    either.
    """
    confirm(
        f"Remove what nobody needs of the models and images of {hosts_meant(inventory, limit)}?",
        yes=yes or dry,
    )
    _show(inventory, overrides, limit, as_json=as_json, pruning=not dry)


@command.command("verify", hidden=True)
@optional_inventory
@limit_option
@connection_options
@pyinfra_json_option
def verify_command(inventory: Path, limit: tuple[str, ...]) -> None:
    """Hash every file of the planned models again: `sparkwright verify`."""
    echo("models verify is called verify now; this name is valid until version 0.3", err=True)
    verify(inventory, limit)


def verify(inventory: Path, limit: tuple[str, ...]) -> None:
    """Become pyinfra, which shows the progress of every host."""
    become(command_line(inventory, limit, (), "roles.models.verified", planless=True))


def _show(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    *,
    as_json: bool,
    pruning: bool,
) -> None:
    operation = f"roles.models.{'pruned' if pruning else 'listed'}"
    answers, silent = ask_hosts(inventory, limit, overrides, operation, planless=True)
    if as_json:
        print_json(answers)
    elif answers:
        echo(render(answers, pruning=pruning))
    faults = [
        thing
        for answer in answers.values()
        for thing in holdings(answer).things
        if thing.fault and thing.fault != "has no receipt"
    ]
    sys.exit(int(bool(faults) or bool(silent) or not answers))

"""``sparkwright history``: every switch of every host. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.deployments import deployments
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.host.lib.records import encode
from sparkwright.results.status import render_history


@click.command("history")
@hosts_argument
@json_option
@click.option("--last", default=40, show_default=True, help="How many switches to show.")
def command(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], as_json: bool, last: int
) -> None:
    """Show who switched what, when, why, for how long it was down, and how it ended.

    Exit code 0 only when every host answered.
    """
    found, silent = deployments(inventory, limit, overrides)
    if as_json:
        print_json({name: encode(one.history) for name, one in found.items()})
    elif found:
        echo(render_history(found, last))
    sys.exit(int(bool(silent) or not found))

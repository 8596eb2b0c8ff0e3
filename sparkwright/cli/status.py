"""``sparkwright status``: what every host runs, live. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.deployments import deployments
from sparkwright.cli.lib.findings import paint
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.host.lib.records import encode
from sparkwright.results.status import render_status, well, without_texts


@click.command("status")
@hosts_argument
@json_option
def command(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], as_json: bool
) -> None:
    """Show release, tag, uptime, restarts, health and drift of every service, and what the
    watch on the hosts holds to be wrong.

    Exit code 0 only when every host answered, everything planned runs, is healthy and as planned,
    and the watch sees no error.
    """
    found, silent = deployments(inventory, limit, overrides)
    if as_json:
        print_json({name: encode(without_texts(one)) for name, one in found.items()})
    elif found:
        echo(render_status(found, paint))
    sys.exit(int(bool(silent) or not found or not all(well(one) for one in found.values())))

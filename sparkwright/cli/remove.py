"""``sparkwright remove``: leave the hosts as they were found."""

from __future__ import annotations

import sys
from functools import partial

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.confirming import confirm, yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.host.lib.records import encode
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
    hosts: Hosts,
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
    confirm(f"Remove {what} from {hosts}?", yes=yes, dry=False)
    from sparkwright.run import changes

    change = partial(changes.removed, services=services, weights=weights, bootstrap=bootstrap)
    found = hosts.change(change, planless=True)
    answers = found.answers
    if as_json:
        print_json(encode(answers))
    for name, answer in {} if as_json else answers.items():
        echo(f"{name}: removed {visible(', '.join(answer.done) or 'nothing')}")
        for line in answer.left:
            echo(f"{name}: left {visible(line)}")
    if found.failures:
        echo(f"{', '.join(found.failures)}: nothing was removed; run this again when they can be "
                   "reached", err=True)  # fmt: skip
    sys.exit(int(bool(found.failures) or not answers))

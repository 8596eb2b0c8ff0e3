"""``sparkwright rollback``: back to an earlier release, batch by batch."""

from __future__ import annotations

import sys
from functools import partial

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import (
    confirm,
    dry_option,
    one_service_option,
    pyinfra_json_option,
    yes_option,
)


@click.command("rollback")
@hosts_argument
@click.option(
    "--to", default=None, metavar="RELEASE", shell_complete=completion.releases,
    help="Switch to this release (see `history`).",
)  # fmt: skip
@one_service_option
@dry_option
@yes_option
@pyinfra_json_option
def command(
    hosts: Hosts, to: str | None, service: str | None, dry: bool, yes: bool, as_json: bool
) -> None:
    """Switch to the release before, or to RELEASE: canaries first, proved, or back again.

    The plan stays as it is: a deploy switches forward again unless the tag is set back, too.
    """
    from sparkwright.run.rollback import rollback

    services = f"service {service}" if service else "every service"
    target = to or "the release before"
    confirm(f"Switch {services} of {hosts} back to {target}?", yes=yes or dry)
    change = partial(rollback, to=to, service=service)
    sys.exit(hosts.show(change, as_json=as_json, planless=True, dry=dry, switches=True))

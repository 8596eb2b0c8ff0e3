"""``sparkwright rollback``: back to an earlier release, batch by batch."""

import sys
from functools import partial

import click

from sparkwright.cli.lib import completion, options
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts


@click.command("rollback")
@hosts_argument
@click.option(
    "--to", default=None, metavar="RELEASE", shell_complete=completion.releases,
    help="Switch to this release (see `history`).",
)  # fmt: skip
@options.one_service_option
@options.dry_option
@options.yes_option
@options.pyinfra_json_option
def command(
    hosts: Hosts, to: str | None, service: str | None, dry: bool, yes: bool, as_json: bool
) -> None:
    """Switch to the release before, or to RELEASE: canaries first, proved, or back again.

    The plan stays as it is: a deploy switches forward again unless the tag is set back, too.
    """
    from sparkwright.run.rollout import rollback

    services = f"service {service}" if service else "every service"
    target = to or "the release before"
    options.confirm(f"Switch {services} of {hosts} back to {target}?", yes=yes or dry)
    change = partial(rollback, to=to, service=service)
    sys.exit(hosts.show(change, as_json=as_json, planless=True, dry=dry, switches=True))

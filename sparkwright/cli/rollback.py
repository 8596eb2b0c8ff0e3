"""``sparkwright rollback``: back to an earlier release, batch by batch. Runs pyinfra."""

from __future__ import annotations

from pathlib import Path

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.confirming import confirm, dry_option, hosts_meant, yes_option
from sparkwright.cli.lib.connecting import hosts_argument, pyinfra_json_option
from sparkwright.cli.lib.hosts import become, command_line


@click.command("rollback")
@hosts_argument
@click.option(
    "--to", default=None, metavar="RELEASE", shell_complete=completion.releases,
    help="Switch to this release (see `history`).",
)  # fmt: skip
@click.option(
    "--service", default=None, metavar="NAME", shell_complete=completion.services,
    help="Switch only this service.",
)  # fmt: skip
@dry_option
@yes_option
@pyinfra_json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    to: str | None,
    service: str | None,
    dry: bool,
    yes: bool,
) -> None:
    """Switch to the release before, or to RELEASE: canaries first, proved, or back again.

    The plan stays as it is: a deploy switches forward again unless the tag is set back, too.
    """
    what = f"service {service}" if service else "every service"
    confirm(
        f"Switch {what} of {hosts_meant(inventory, limit)} back to {to or 'the release before'}?",
        yes=yes or dry,
    )
    words = command_line(
        inventory,
        limit,
        overrides,
        "roles.rollback.rollback",
        planless=True,
        dry=dry,
        to=to,
        service=service,
    )
    become(words)

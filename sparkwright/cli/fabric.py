"""``sparkwright fabric``: ConnectX-7 between hosts."""

import sys
from collections.abc import Mapping
from typing import Any

import click

from sparkwright.cli.lib import extras, options, output, selection
from sparkwright.cli.lib.hosts import Hosts, connection_options
from sparkwright.findings.user_error import UserError
from sparkwright.site.clusters import fabric_problems, members


@click.group("fabric", cls=extras.ExtensibleGroup)
def command() -> None:
    """ConnectX-7 between hosts: static addresses, and measured speed."""


@command.command("addresses")
@selection.inventory_argument(Hosts)
@connection_options
@click.option("--dry", is_flag=True, help="Show the changes without making them.")
@click.option("--diff", is_flag=True, help="Show the text of the file that changes.")
@options.pyinfra_json_option
def addresses_command(hosts: Hosts, dry: bool, diff: bool, as_json: bool) -> None:
    """Write the addresses of `fabric_addresses` with netplan, and check every rail with a ping.

    A host reverts an unproven change by itself, so no connection is lost for good. Correct
    addresses are not changed. `sparkwright remove` removes the addresses.
    """
    from sparkwright.run.fabric_addresses import addresses

    named = hosts.only(named_hosts(hosts.everyone))
    sys.exit(named.show(addresses, as_json=as_json, dry=dry, diff=diff))


def named_hosts(everyone: dict[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the hosts of ``fabric_addresses``.

    Raises:
        UserError: no host's settings have the fabric, or the fabric has an unknown host.
    """
    if problems := list(fabric_problems(everyone)):
        raise UserError(problems)
    named = dict.fromkeys(name for data in everyone.values() for name in members(data))
    if not named:
        raise output.MESSAGES.refusal("no-fabric-hosts", "fabric_addresses")
    return tuple(named)

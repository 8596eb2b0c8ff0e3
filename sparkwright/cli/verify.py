"""``sparkwright verify``: the weights on the hosts hashed again."""

from __future__ import annotations

import sys

import click

from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import pyinfra_json_option


@click.command("verify")
@hosts_argument
@pyinfra_json_option
def command(hosts: Hosts, as_json: bool) -> None:
    """Hash every file of the planned models on their hosts again.

    A deploy trusts files by size and time of change; this finds what a disk has turned since. A
    wrong file is named, and the next deploy fetches it anew. Changes nothing else.
    """
    from sparkwright.run import changes

    sys.exit(hosts.show(changes.verified, as_json=as_json, planless=True))

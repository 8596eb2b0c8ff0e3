"""``sparkwright verify``: the weights on the hosts hashed again. Runs pyinfra."""

from __future__ import annotations

from pathlib import Path

import click

from sparkwright.cli.lib.connecting import connection_options, pyinfra_json_option
from sparkwright.cli.lib.options import limit_option, optional_inventory
from sparkwright.cli.models import verify


@click.command("verify")
@optional_inventory
@limit_option
@connection_options
@pyinfra_json_option
def command(inventory: Path, limit: tuple[str, ...]) -> None:
    """Hash every file of the planned models on their hosts again.

    A deploy trusts files by size and time of change; this finds what a disk has turned since. A
    wrong file is named, and the next deploy fetches it anew. Changes nothing else.
    """
    verify(inventory, limit)

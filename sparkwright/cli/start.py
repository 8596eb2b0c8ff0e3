"""``sparkwright start``: services that are stopped run again."""

from __future__ import annotations

import click

from sparkwright.cli.lib.confirming import yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.control import control, wait_option
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option
from sparkwright.cli.lib.services import service_option


@click.command("start")
@hosts_argument
@service_option
@wait_option
@yes_option
@json_option
def command(
    hosts: Hosts,
    services: tuple[str, ...],
    wait: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Start services as the last deploy left them, and at every boot again.

    Exit code 0 only when every host answered and what was started gives real answers.
    """
    control(
        "start", hosts, services, yes=yes, as_json=as_json, wait=wait
    )  # fmt: skip

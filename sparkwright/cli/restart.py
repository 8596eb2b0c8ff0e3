"""``sparkwright restart``: services stopped and started again."""

from __future__ import annotations

import click

from sparkwright.cli.lib.confirming import yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.control import control, now_option, wait_option
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option
from sparkwright.cli.lib.services import service_option


@click.command("restart")
@hosts_argument
@service_option
@now_option
@wait_option
@yes_option
@json_option
def command(
    hosts: Hosts,
    services: tuple[str, ...],
    now: bool,
    wait: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Restart services: out of the pool, drained, stopped, started, and back once they answer.

    One host after the other, so that other replicas serve meanwhile; after one that does not come
    back no further host is touched. With --now all at once, and requests are cut off. Exit code 0
    only when every host answered and every service gives real answers.
    """
    control(
        "restart", hosts, services,
        yes=yes, as_json=as_json, now=now, wait=wait,
    )  # fmt: skip

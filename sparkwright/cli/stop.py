"""``sparkwright stop``: services stopped until somebody starts them."""

from __future__ import annotations

import click

from sparkwright.cli.lib.confirming import yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.control import control, now_option, why_option
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option
from sparkwright.cli.lib.services import service_option


@click.command("stop")
@hosts_argument
@service_option
@now_option
@click.option("--keep", is_flag=True, help="A boot does not start them either.")
@why_option
@yes_option
@json_option
def command(
    hosts: Hosts,
    services: tuple[str, ...],
    now: bool,
    keep: bool,
    why: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Stop services: out of the pool, drained, and ended.

    As `systemctl stop` has it: until the next start, a boot or a restart of Docker included. A
    deploy starts them again, and says who had stopped them. It waits for nobody's lock: a deploy
    that died may hold it. Exit code 0 only when every host answered and every service stopped.
    """
    control(
        "stop", hosts, services,
        yes=yes, as_json=as_json, now=now, keep=keep, why=why,
    )  # fmt: skip

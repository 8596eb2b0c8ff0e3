"""``sparkwright discover``: Sparks and other boxes on the LAN."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.extras.discover.asking import Box, boxes
from sparkwright.extras.discover.names import candidates, resolved
from sparkwright.host.lib.records import encode
from sparkwright.text.table import columns

_WAITING = 3.0


def found(*, mdns: bool) -> list[Box]:
    """Every box that is found, with what it is."""
    return boxes(candidates(Path.home(), _WAITING, resolved, mdns))


@click.command("discover")
@click.option("--mdns/--no-mdns", default=True, help="Whether the LAN is asked, by mDNS.")
@json_option
def command(mdns: bool, as_json: bool) -> None:
    """Find Sparks and other boxes on the LAN, and which GPU each has.

    Names come from mDNS (who announces SSH), ~/.ssh/config and ~/.ssh/known_hosts; only those with
    private addresses are asked, by your own ssh without any question: a host whose key you have not
    accepted yet is listed with what ssh says. Nothing is changed on any. Exit code 1: no GPU was
    found.
    """
    listed = found(mdns=mdns)
    if as_json:
        print_json([encode(one) for one in listed])
    else:
        rows = [(one.name, one.gpu or "-", one.shown or one.why, one.source) for one in listed]
        for line in columns([("NAME", "GPU", "WHAT IT SAYS", "FROM"), *rows]):
            echo(line)
    sys.exit(int(not any(one.gpu for one in listed)))

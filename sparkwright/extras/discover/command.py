"""``sparkwright discover``: Sparks and other boxes on the LAN."""

import sys

import click

from sparkwright.bootstrap.gpu_question import Box
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.extras.discover.names import discovered
from sparkwright.host.lib.records import encode
from sparkwright.text.table import columns

DOCUMENT = list[Box]


@click.command("discover")
@click.option("--mdns/--no-mdns", default=True, help="Ask the LAN by mDNS.")
@json_option
def command(mdns: bool, as_json: bool) -> None:
    """Find Sparks and other boxes on the LAN, and which GPU each has.

    Names come from mDNS (who announces SSH), ~/.ssh/config and ~/.ssh/known_hosts; only those with
    private addresses are asked, by your own ssh without any question: a host whose key you have not
    accepted yet is boxes with what ssh says. Nothing is changed on any. Exit code 1: no GPU was
    found.
    """
    boxes = discovered(mdns=mdns)
    if as_json:
        print_json([encode(box) for box in boxes])
    else:
        rows = [(box.name, box.gpu or "-", box.shown or box.why, box.source) for box in boxes]
        for line in columns([("NAME", "GPU", "WHAT IT SAYS", "FROM"), *rows]):
            echo(line)
    sys.exit(int(not any(box.gpu for box in boxes)))

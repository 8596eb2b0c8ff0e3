"""``sparkwright diff``: the plan against what the hosts run."""

from __future__ import annotations

import sys

import click

from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.deployments import deployments
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.results.status import render_diff


@click.command("diff")
@hosts_argument
@json_option
def command(hosts: Hosts, as_json: bool) -> None:
    """Show what a deploy would change in the files of the services, line by line.

    Exit code 1 when anything differs or a host does not answer.
    """
    answers = deployments(hosts, planless=False)
    found = answers.answers
    text = render_diff(found)
    if as_json:
        texts = {host: render_diff({host: seen}) for host, seen in found.items()}
        print_json([{"host": host, "text": one} for host, one in texts.items() if one])
    elif found:
        echo(text or f"no difference: {', '.join(found)}", err=not text)
    sys.exit(int(bool(text) or bool(answers.failures) or not found))

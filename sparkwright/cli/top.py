"""``sparkwright top``: current load of the fleet, one line per service."""

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial

import click

from sparkwright.cli.lib import options, output
from sparkwright.cli.lib.hosts import Hosts, services_argument
from sparkwright.results.load import Line, Seen, lines, problems, table
from sparkwright.text.visible import visible_json

#: Number of samples that a rate needs, and seconds between the samples with --once.
_ANSWERS, _ONCE = 2, 1.0


@click.command("top")
@services_argument
@options.option("top --interval", type=click.FloatRange(1, 3600))
@options.option("top --once")
@options.json_option
def command(hosts: Hosts, interval: float, once: bool, as_json: bool) -> None:
    """Show every service's load: tokens/s, requests, KV cache, drafts, GPU and memory.

    TOK/S and ACC (the share of drafted tokens that are accepted) cover the last interval; other
    figures are current. With several GPUs, the busiest GPU counts. On a terminal the screen is
    redrawn; elsewhere `top` prints a table per interval, or a line with --json. Ctrl-C ends the
    command. Exit with 1 when a host does not answer.
    """
    from sparkwright.run.questions import current_load, follow

    plain = once or as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb"
    pause, count = (_ONCE, _ANSWERS) if once else (interval, 0)
    with (
        hosts.session(planless=True) as session,
        nullcontext() if plain else output.screen() as show,
    ):
        broken = session.run.broken
        fleet = {name: Seen() for name in session.run.hosts}
        due = time.monotonic() + interval
        watch = partial(follow, question=current_load, interval=pause, count=count)
        for event in session.watch(watch):
            if event is not None:
                host, look = event
                fleet[host] = fleet[host].then(look)
            result = list(lines(fleet, hosts.means))
            if show is not None:
                head, *rest = table(result)
                faults = click.style("\n".join(problems(result)), fg="red")
                show("\n".join([click.style(head, bold=True), *rest, "", faults]))
            elif not once and time.monotonic() >= due:
                due = time.monotonic() + interval
                _print(result, as_json)
    if broken:
        click.echo(broken, err=True)
    result = list(lines(fleet, hosts.means))
    _print(result, as_json)
    sys.exit(int(any(seen.now is None for seen in fleet.values()) or not result))


def _print(lines: Sequence[Line], as_json: bool) -> None:
    """Print a table; with --json a single line, so that a program reads one line per interval."""
    if as_json:
        rows = json.dumps([asdict(line) for line in lines], ensure_ascii=False)
        click.echo(visible_json(rows))
    elif lines:
        click.echo("\n".join([*table(lines), *problems(lines), ""]))

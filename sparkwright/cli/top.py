"""``sparkwright top``: what the fleet does now, a line for each service. Runs pyinfra."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import click

from sparkwright.cli.lib.completion import services
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.following import following
from sparkwright.cli.lib.options import json_option
from sparkwright.host.lib.records import decode
from sparkwright.host.load import HostLoad
from sparkwright.results.load import Line, Seen, lines, table
from sparkwright.text.visible import visible_json

_ANSWERS = 2
#: A rate needs two looks; so far apart are those of --once.
_ONCE = 1.0


@click.command("top")
@hosts_argument
@click.option(
    "--service",
    default=None,
    metavar="NAME",
    shell_complete=services,
    help="Show only this service.",
)
@click.option(
    "--interval", type=click.FloatRange(1, 3600), default=2.0, show_default=True, metavar="S",
    help="Seconds between two looks.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="One table, of two looks a second apart, and end.")
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    service: str | None,
    interval: float,
    once: bool,
    as_json: bool,
) -> None:
    """Show what every service does: tokens/s, requests, KV cache, drafts, GPU and memory.

    TOK/S and ACC (the share of drafted tokens that is accepted) are of the last interval, the rest
    is of now; of several GPUs the busiest. A screen that is drawn anew at a terminal; else a table
    for each interval, with --json a line. Ctrl-C ends it. One connection to each host, and one
    execution a look. Exit code 1 when a host does not answer.
    """
    fleet: dict[str, Seen] = {}
    plain = once or as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb"
    looks = {"interval": _ONCE, "count": _ANSWERS} if once else {"interval": interval}
    with (
        following(inventory, limit, overrides, "roles.status.load", planless=True, **looks) as fed,
        nullcontext() if plain else _screen() as screen,
    ):
        due = time.monotonic() + interval
        for line in fed:
            _take(fleet, line)
            if screen is not None:
                screen.update(list(lines(fleet, service)))
            elif not once and time.monotonic() >= due:
                due = time.monotonic() + interval
                _print(list(lines(fleet, service)), as_json)
        for name, why in fed.refused().items():
            fleet[name] = fleet.get(name, Seen()).silent(why)
        words = fed.words()
    if not fleet:
        click.echo(words, nl=False, err=True)
        sys.exit(2)
    found = list(lines(fleet, service))
    _print(found, as_json)
    sys.exit(int(any(one.now is None for one in fleet.values()) or not found))


def _take(fleet: dict[str, Seen], line: Mapping[str, Any] | None) -> None:
    """A line of the feed: a host, a look at it, or why there was none."""
    if line is None:
        return
    seen = fleet.setdefault(line["host"], Seen())
    if "load" in line:
        fleet[line["host"]] = seen.then(decode(HostLoad, line["load"]))
    elif "silent" in line:
        fleet[line["host"]] = seen.silent(line["silent"])


def _print(found: Sequence[Line], as_json: bool) -> None:
    """One table; as JSON one line, so that a reader has one each interval."""
    if as_json:
        rows = json.dumps([asdict(line) for line in found], ensure_ascii=False)
        click.echo(visible_json(rows))
    elif found:
        click.echo("\n".join([*table(found), ""]))


class _Screen(Protocol):
    def update(self, found: list[Line]) -> None: ...


@contextmanager
def _screen() -> Iterator[_Screen]:
    """The terminal's other screen, as `top` has it; what was there comes back at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:

        class Drawn:
            def update(self, found: list[Line]) -> None:
                head, *rest = table(found)
                shown = Text(f"{head}\n", style="bold", no_wrap=True, overflow="ellipsis")
                for line, said in zip(found, rest, strict=True):
                    shown.append(f"{said}\n", style="not bold red" if line.problem else "not bold")
                live.update(shown, refresh=True)

        yield Drawn()

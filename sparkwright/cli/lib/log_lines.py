"""A line of a log, on a terminal or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from sparkwright.host.lib.records import encode
from sparkwright.host.logs import LogLine
from sparkwright.text.timestamps import utc
from sparkwright.text.visible import log_line, visible, visible_json


@dataclass(frozen=True)
class Line:
    """A line of a service on a host; ``at`` in seconds since the epoch, by the host's clock."""

    host: str
    service: str
    at: float
    text: str


def of_host(host: str, lines: Iterable[LogLine]) -> Iterator[Line]:
    """A host's lines."""
    return (Line(host, line.service, line.at, line.text) for line in lines)


def echo(line: Line, *, as_json: bool) -> None:
    """Print it: nothing of it is obeyed by a terminal."""
    if as_json:
        click.echo(visible_json(json.dumps(encode(line), ensure_ascii=False)))
        return
    when = utc(line.at).astimezone().strftime("%b %d %H:%M:%S")
    where = click.style(f"{line.host} {visible(line.service, 80)}", fg="cyan")
    click.echo(f"{when} {where}: {log_line(line.text)}")

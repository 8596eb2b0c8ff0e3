"""``sparkwright render``: the files that a run would put on the hosts, to a directory."""

from __future__ import annotations

from pathlib import Path

import click

from sparkwright.cli.options import (
    data_option,
    inventory_and_directory,
    json_option,
    limit_option,
    load_judged,
    print_json,
)
from sparkwright.cli.output import echo
from sparkwright.plan.release import render_release
from sparkwright.site.resolution import pinned


@click.command("render")
@inventory_and_directory
@data_option
@limit_option
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    directory: Path,
    as_json: bool,
) -> None:
    """Write compose files and units of every host to DIRECTORY/HOST/.

    Digests and commits come from fleet.lock; without one, registries and hubs are queried.
    """
    hosts = load_judged(inventory, overrides, limit).or_raise()
    resolution = pinned(hosts)
    written: list[str] = []
    for name, host in hosts.items():
        for service in host.plan.services:
            release = render_release(host.plan, service, resolution)
            for path, text in (
                (f"{release.directory}/compose.yaml", release.compose),
                (release.unit_path, release.unit),
            ):
                place = directory / name / path.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
                written.append(str(place))
    if as_json:
        print_json(written)
        return
    echo(f"{len(written)} files of {len(hosts)} hosts in {directory}")

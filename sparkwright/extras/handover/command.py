"""``sparkwright render``: the files that a run would put on the hosts, to a directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from sparkwright.cli.lib.options import (
    data_option,
    inventory_and,
    json_option,
    limit_option,
    print_json,
)
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load_judged
from sparkwright.config.secrets import shown
from sparkwright.extras.handover.formats import FORMATS, Format
from sparkwright.plan.service import render_service
from sparkwright.resolve.resolution import Resolution
from sparkwright.site.desired import stop
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import pinned

DOCUMENT = list[str]


@click.command("render")
@inventory_and(directory=click.Path(path_type=Path, file_okay=False))
@data_option
@limit_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["compose", *FORMATS]),
    default="compose",
    show_default=True,
    help="Whose files to write: those of a run, or manifests or quadlets of the same services.",
)
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    directory: Path,
    form: str,
    as_json: bool,
) -> None:
    """Write compose files and units of every host to DIRECTORY/HOST/.

    Digests and commits come from fleet.lock; without one, registries and hubs are queried. With
    --format kubernetes or quadlet the same services are written for the tool that takes over from
    this one (docs/scale.md); API keys are named, never written.
    """
    hosts = load_judged(inventory, overrides, limit).or_raise()
    handed = FORMATS.get(form)
    if handed:
        stop(hosts)
    resolution = pinned(hosts)
    texts = _handed(hosts, resolution, handed) if handed else _releases(hosts, resolution)
    # Everything is rendered before anything is written: a mistake leaves no half of a fleet.
    found = {directory / path: text for path, text in texts}
    for place, text in found.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    if as_json:
        print_json([str(place) for place in found])
    else:
        echo(f"{len(found)} files of {len(hosts)} hosts in {directory}")
    if handed:
        for line in _keys(hosts, resolution, handed):
            echo(line, err=True)


def _releases(
    hosts: Mapping[str, PlannedHost], resolution: Resolution
) -> Iterator[tuple[str, str]]:
    for name, host in hosts.items():
        for service in host.plan.services:
            rendered = render_service(host.plan, service, resolution)
            yield f"{name}{rendered.directory}/compose.yaml", rendered.compose
            yield f"{name}{rendered.unit_path}", rendered.unit_text


def _handed(
    hosts: Mapping[str, PlannedHost], resolution: Resolution, handed: Format
) -> Iterator[tuple[str, str]]:
    for name, host in hosts.items():
        for one in handed.services(host.plan, resolution):
            for path, text in handed.render(one).items():
                yield f"{name}/{path}", text


def _keys(
    hosts: Mapping[str, PlannedHost], resolution: Resolution, handed: Format
) -> Iterator[str]:
    """How each key gets to where the file names it, on no command line: printf is the shell's."""
    for name, host in hosts.items():
        key = shown(host.plan.settings.api_key_source)
        for one in handed.services(host.plan, resolution):
            line = f"printf 'VLLM_API_KEY=%s\\n' \"{key}\""
            yield f"{name}: {one.service.name} needs: {line} | {handed.secret(one)}"

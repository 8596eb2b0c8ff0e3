"""``sparkwright render``: the files of a run, written to a directory."""

from pathlib import Path

import click

from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load_judged
from sparkwright.documents.text_files import write
from sparkwright.plan.service import render_service
from sparkwright.site.resolution import pinned

DOCUMENT = list[str]


@click.command("render")
@selection.names_argument(services=True)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@options.json_option
def command(hosts: selection.Selection, directory: Path, as_json: bool) -> None:
    """Write compose files and units of every host to DIRECTORY/HOST/.

    Digests and commits come from fleet.lock; without a lock, registries and hubs are queried.
    """
    planned = load_judged(hosts).or_raise()
    resolution = pinned(planned)
    # Everything is rendered before anything is written: a mistake leaves no partial output.
    texts: dict[Path, str | bytes] = {}
    for name, host in planned.items():
        for service in (each for each in host.plan.services if hosts.means(name, each.name)):
            rendered = render_service(host.plan, service, resolution)
            texts[directory / f"{name}{rendered.directory}/compose.yaml"] = rendered.compose
            texts[directory / f"{name}{rendered.unit_path}"] = rendered.unit_text
            folder = directory / f"{name}{rendered.directory}/files"
            texts |= {folder / each.name: each.content for each in service.files}
    for path, text in texts.items():
        write(path, text)
    if as_json:
        options.print_json([str(path) for path in texts])
    else:
        echo(f"{len(texts)} files of {len(planned)} hosts in {directory}")

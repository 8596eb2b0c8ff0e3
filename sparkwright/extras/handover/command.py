"""``sparkwright render``: the files that a run would put on the hosts, to a directory."""

from pathlib import Path

import click

from sparkwright.cli.lib import options
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load_judged
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.config.secrets import shown
from sparkwright.documents.text_files import write
from sparkwright.engines import engine
from sparkwright.extras.handover.formats import FORMATS, handover
from sparkwright.findings.user_error import Problems
from sparkwright.plan.service import render_service
from sparkwright.site.fleet import stopping
from sparkwright.site.resolution import pinned

DOCUMENT = list[str]


@click.command("render")
@names_argument(services=True)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--format", "form", type=click.Choice(["compose", *FORMATS]), default="compose",
    show_default=True,
    help="Files to write: a deploy's, Kubernetes manifests or Podman quadlets.",
)  # fmt: skip
@options.json_option
def command(hosts: Selection, directory: Path, form: str, as_json: bool) -> None:
    """Write compose files and units of every host to DIRECTORY/HOST/.

    Digests and commits come from fleet.lock; without one, registries and hubs are queried. With
    --format kubernetes or quadlet the same services are written for the tool that takes over from
    this one (docs/scale.md); API keys are named, never written.
    """
    planned = load_judged(hosts).or_raise()
    if form != "compose":
        Problems(stopping(planned)).stop()
    resolution = pinned(planned)
    # Everything is rendered before anything is written: a mistake leaves no half of a fleet.
    texts: dict[Path, str | bytes] = {}
    needs: list[str] = []
    for name, host in planned.items():
        key = shown(host.plan.settings.api_key_source)
        for service in (each for each in host.plan.services if hosts.means(name, each.name)):
            if form == "compose":
                rendered = render_service(host.plan, service, resolution)
                texts[directory / f"{name}{rendered.directory}/compose.yaml"] = rendered.compose
                texts[directory / f"{name}{rendered.unit_path}"] = rendered.unit_text
                folder = directory / f"{name}{rendered.directory}/files"
                texts |= {folder / each.name: each.content for each in service.files}
            else:
                handed = handover(form, host.plan, service, resolution)
                texts |= {directory / name / path: text for path, text in handed.files.items()}
                # On no command line: printf is the shell's.
                variable = engine(service.engine).key_variable
                lines = {"": f"printf '{variable}=%s\\n' \"{key}\""}
                for secret in service.settings.secrets:
                    value = shown(secret.source) if secret.source else f"${secret.variable}"
                    lines[secret.name] = f'printf %s "{value}"'
                needs += [
                    f"{name}: {service.name} needs: {lines[secret]} | {command}"
                    for secret, command in handed.secrets.items()
                ]
                needs += [f"{name}: {service.name} needs: {line}" for line in handed.directories]
    for path, text in texts.items():
        write(path, text)
    if as_json:
        options.print_json([str(path) for path in texts])
    else:
        echo(f"{len(texts)} files of {len(planned)} hosts in {directory}")
    for need in needs:
        echo(need, err=True)

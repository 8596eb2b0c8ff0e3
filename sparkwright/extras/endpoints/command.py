"""``sparkwright endpoints``: the fleet's addresses and names as configuration of its clients."""

import shlex
from pathlib import Path

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.config.keys import DEFAULT
from sparkwright.extras.endpoints.clients import FORMATS, Endpoints, render, usable
from sparkwright.extras.endpoints.fleet import export
from sparkwright.site.endpoints import cas, key_command, keys

DOCUMENT = Endpoints


@click.command("endpoints")
@names_argument(services=True)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="json", show_default=True,
    help="Whose configuration to write.",
)  # fmt: skip
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False),
    help="A file instead of standard output.",
)  # fmt: skip
@click.option(
    "--key", default=DEFAULT, metavar="NAME", shell_complete=completion.keys,
    help="A client's key of `keys`; else the fleet's own.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON: short for --format json.")
def command(hosts: Selection, form: str, key: str, output: Path | None, as_json: bool) -> None:
    """Write the planned fleet as configuration of its clients.

    Addresses, served names with the sampling that the cards advise, context and longest answer.
    API keys are named, never written: a variable that the client reads. No host is contacted.
    """
    exported = export(load(hosts).or_raise(), key)
    form = "json" if as_json else form
    named = [each for each in exported.endpoints if hosts.means(each.host, each.service)]
    endpoints, notes = usable(form, named)
    text = render(form, endpoints)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(output)) from None
    for note in (*exported.notes, *notes):
        echo(f"{click.style('note', fg='yellow')}: {note}", err=True)
    for ca in cas(endpoints):
        echo(f"the client trusts: {ca}; a client in Node takes it by "
                   f"export NODE_EXTRA_CA_CERTS={shlex.quote(ca)}", err=True)  # fmt: skip
    for needed in keys(endpoints):
        echo(f"the client needs: {key_command(needed)}", err=True)

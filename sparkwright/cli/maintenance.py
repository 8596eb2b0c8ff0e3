"""``sparkwright maintenance``: a host out of every pool, and back. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib.connecting import connection_options
from sparkwright.cli.lib.control import why_option
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import data_option, json_option, print_json, site_inventory
from sparkwright.cli.lib.output import echo
from sparkwright.config.inventory import limited, read_inventory
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.host.lib.records import decode
from sparkwright.host.maintenance import MaintenanceAnswer
from sparkwright.text.visible import visible

_SWITCH = {"on": True, "off": False}


def _words(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) not in (2, 3) or given[-1] not in _SWITCH:
        raise click.BadParameter("write [INVENTORY] HOST on, or off")
    return given


@click.command("maintenance")
@click.argument("words", nargs=-1, metavar="[INVENTORY] HOST on|off", callback=_words)
@connection_options
@data_option
@why_option
@json_option
def command(words: tuple[str, ...], overrides: tuple[str, ...], why: str, as_json: bool) -> None:
    """Take a HOST out of every pool, drained, and have deploys leave it alone; or put it back.

    Its services go on, for nobody but the host itself. The host remembers it over boots, with who,
    when and why, for every controller. `off` puts it back once every service answers, and ends
    with 1 as long as one does not.
    """
    *named, host, switch = words
    inventory = Path(named[0]) if named else site_inventory()
    chosen = limited(read_inventory(inventory, overrides), (host,))
    if [one.name for one in chosen] != [host]:
        what = f"{host!r} is a group or a pattern"
        raise UserError([mistake("HOST", what, "name one host at a time")])
    answers, _ = ask_hosts(
        inventory, (host,), overrides, "roles.maintenance.maintenance", planless=True,
        on=_SWITCH[switch], why=why,
    )  # fmt: skip
    if host not in answers:
        sys.exit(1)
    answer = decode(MaintenanceAnswer, answers[host])
    if as_json:
        print_json({"host": host, **answers[host]})
    else:
        _show(host, answer)
    sys.exit(int(bool(answer.wrong)))


def _show(host: str, answer: MaintenanceAnswer) -> None:
    for line in answer.done:
        echo(f"{host}: {visible(line)}")
    for line in answer.left:
        echo(f"{host}: {click.style('note', fg='yellow')}: {visible(line)}")
    for line in answer.wrong:
        echo(f"{click.style(host, fg='red')}: {visible(line)}", err=True)
    mark = answer.now
    if mark is None:
        echo(f"{host}: is not in maintenance")
        return
    why = f": {visible(mark.why, 200)}" if mark.why else ""
    still = "stays" if answer.wrong else "is"
    echo(f"{host}: {still} in maintenance, by {visible(mark.by, 80)}{why}")

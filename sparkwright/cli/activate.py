"""``sparkwright activate``: another one of a group of exclusive services. Runs pyinfra."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.confirming import confirm, dry_option, hosts_meant, yes_option
from sparkwright.cli.lib.connecting import connection_options
from sparkwright.cli.lib.control import why_option
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import data_option, json_option, print_json, site_inventory
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.services import misspelt
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.lib.records import decode
from sparkwright.text.visible import visible


def _words(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) not in (1, 2):
        raise click.BadParameter("write [INVENTORY] SERVICE")
    return given


@click.command("activate")
@click.argument(
    "words", nargs=-1, metavar="[INVENTORY] SERVICE", callback=_words,
    shell_complete=completion.services,
)  # fmt: skip
@connection_options
@data_option
@click.option(
    "--host", "--limit", "limit", multiple=True, metavar="HOST", shell_complete=completion.hosts,
    help="Only this host, group or pattern such as 'spark-*' (repeatable).",
)  # fmt: skip
@why_option
@dry_option
@yes_option
@json_option
def command(
    words: tuple[str, ...],
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    why: str,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Have SERVICE run in place of the one of its `exclusive` group that does.

    Running requests get their time (drain_seconds), then it is started and gives real answers; if
    it gives none, the one before runs again, and no further host is switched. A boot starts what
    was activated last, and a deploy leaves it so. Exit code 0 only when SERVICE runs on every host
    that has it.
    """
    *named, service = words
    inventory = Path(named[0]) if named else site_inventory()
    confirm(f"Activate {service} on {hosts_meant(inventory, limit)}?", yes=yes or dry)
    if not dry:
        echo("Switching: running requests get their time (drain_seconds), boots take minutes.",
             err=True)  # fmt: skip
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.control.activated", planless=True,
        service=service, why=why, dry_run=dry,
    )  # fmt: skip
    found = {host: decode(ActivateAnswer, answer) for host, answer in answers.items()}
    if as_json:
        print_json({"hosts": answers, "silent": silent})
    else:
        for host, answer in found.items():
            _show(host, service, answer, dry=dry)
    wrong = misspelt([service], answers) or any(one.wrong for one in found.values())
    sys.exit(int(bool(silent) or not answers or wrong))


def _show(host: str, service: str, answer: ActivateAnswer, *, dry: bool) -> None:
    for line in answer.wrong:
        echo(f"{click.style(host, fg='red')}: {visible(line)}", err=True)
    if answer.wrong or answer.group is None:
        return
    was = visible(answer.was or "none", 80)
    if answer.was == service:
        echo(f"{host}: {service} runs already")
    elif dry:
        echo(f"{host}: would stop {was} and start {service}")
    else:
        echo(f"{host}: {service} runs, {was} sleeps; down for {answer.down_seconds:.1f} s")

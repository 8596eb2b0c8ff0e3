"""What ``start``, ``stop`` and ``restart`` share: they ask, do it on every host, and say what was
done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from sparkwright.cli.lib.confirming import confirm
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.services import misspelt
from sparkwright.host.control import ControlAnswer
from sparkwright.host.lib.records import encode
from sparkwright.text.visible import visible

_PATIENCE = {
    "start": "Starting: a first boot takes minutes.",
    "stop": "Stopping: running requests get their time (drain_seconds), unless with --now.",
    "restart": "Restarting: running requests get their time (drain_seconds), boots take minutes.",
}
wait_option = click.option(
    "--wait/--no-wait", default=True, show_default=True,
    help="Wait until what is started gives real answers.",
)  # fmt: skip
now_option = click.option(
    "--now", is_flag=True,
    help="Cut off what runs, and end a switch that is under way: for emergencies.",
)  # fmt: skip
why_option = click.option("--why", default="", metavar="TEXT", help="For those who ask later.")


def control(
    action: str,
    hosts: Hosts,
    services: tuple[str, ...],
    *,
    yes: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Do it and end: with 0 only when every host answered, and did what was asked."""
    from sparkwright.run import changes

    named = ", ".join(services) or "every service"
    confirm(f"{action.capitalize()} {named} on {hosts}?", yes=yes, dry=False)
    echo(_PATIENCE[action], err=True)
    found = hosts.change(
        partial(changes.controlled, action=action, services=services, **more), planless=True
    )
    answers: dict[str, ControlAnswer] = found.answers
    if as_json:
        print_json({"hosts": encode(answers), "silent": found.silent})
    else:
        _show(answers)
    failed = misspelt(services, answers) or any(answer.wrong for answer in answers.values())
    sys.exit(int(bool(found.failures) or not answers or failed))


def _show(answers: Mapping[str, ControlAnswer]) -> None:
    for host, answer in answers.items():
        for service, done in answer.done.items():
            echo(f"{host}: {visible(service)}: {visible(done)}")
        for line in answer.wrong:
            echo(f"{click.style(host, fg='red')}: {visible(line)}", err=True)
        if not answer.known:
            echo(f"{host}: no service was ever started here")

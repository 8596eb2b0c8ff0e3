"""What ``start``, ``stop`` and ``restart`` share: they ask, do it on every host, and say what was
done."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from sparkwright.cli.lib.confirming import confirm, hosts_meant
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.services import joined, misspelt
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
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    services: Sequence[str],
    *,
    yes: bool,
    as_json: bool,
    **more: str | bool,
) -> None:
    """Do it and end: with 0 only when every host answered, and did what was asked."""
    what = ", ".join(services) or "every service"
    confirm(f"{action.capitalize()} {what} on {hosts_meant(inventory, limit)}?", yes=yes, dry=False)
    echo(_PATIENCE[action], err=True)
    answers, silent = ask_hosts(
        inventory, limit, overrides, "roles.control.controlled", planless=True,
        action=action, services=joined(services), **more,
    )  # fmt: skip
    if as_json:
        print_json({"hosts": answers, "silent": silent})
    else:
        _show(answers)
    wrong = misspelt(services, answers) or any(one["wrong"] for one in answers.values())
    sys.exit(int(bool(silent) or not answers or wrong))


def _show(answers: Mapping[str, Mapping[str, Any]]) -> None:
    for host, answer in answers.items():
        for service, done in answer["done"].items():
            echo(f"{host}: {visible(service)}: {visible(done)}")
        for line in answer["wrong"]:
            echo(f"{click.style(host, fg='red')}: {visible(line)}", err=True)
        if not answer["known"]:
            echo(f"{host}: no service was ever started here")

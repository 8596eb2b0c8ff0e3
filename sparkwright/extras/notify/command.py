"""``sparkwright notify``: tell people what begins, worsens and ends. Runs pyinfra."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from sparkwright.cli.deployments import deployments
from sparkwright.cli.lib.connecting import connection_words, hosts_argument
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.config.notices import Address, addresses
from sparkwright.extras.notify import timer
from sparkwright.extras.notify.current import UNANSWERED, current
from sparkwright.extras.notify.dispatch import Sent, go, try_out
from sparkwright.extras.notify.record import PLACE, held, read
from sparkwright.extras.notify.send import send
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.text.visible import visible_text

DOCUMENT = list[Sent]


@click.command("notify")
@hosts_argument
@click.option("--test", is_flag=True, help="Send a test to every address. Asks no host.")
@click.option("--dry", is_flag=True, help="Print what would be sent; send and write nothing.")
@click.option("--install", is_flag=True, help="Have a systemd timer here do it from now on.")
@click.option("--uninstall", is_flag=True, help="Take that timer away.")
@json_option
def command(
    hosts: Hosts,
    test: bool,
    dry: bool,
    install: bool,
    uninstall: bool,
    as_json: bool,
) -> None:
    """Look at every host once, and send a notice of what is new to the addresses of `notify`.

    What the watch on the hosts holds to be wrong, services that were stopped, and hosts that do not
    answer: once when it begins, once when it worsens, once when it ends. Needs
    `pip install 'sparkwright[notify]'`. Exit code 1 when a notice could not be sent.
    """
    if uninstall:
        echo("the timer is gone" if timer.remove() else "there is no timer")
        return
    targets = _targets(hosts)
    if install:
        place = timer.install(Path.cwd(), hosts.inventory, connection_words())
        echo(f"{place / timer.UNITS[1]} looks at the fleet every two minutes")
        echo("journalctl -t sparkwright-notify says what it did")
        return
    if test:
        done = try_out(targets, send)
    else:
        findings, unknown = _asked(hosts)
        done = _dry(targets, findings, unknown) if dry else _told(targets, findings, unknown)
    if as_json:
        print_json([asdict(one) for one in done])
    else:
        echo("\n".join(_line(one, texts=dry) for one in done))
    sys.exit(int(any(one.state == "failed" for one in done)))


def _targets(hosts: Hosts) -> tuple[Address, ...]:
    found = addresses((host.name, host.data) for host in hosts.only(()).read())
    if not found:
        what = "no address is set"
        raise UserError(
            [mistake("group_data/all.py: notify", what, 'write notify = ["ntfy:MY-TOPIC"]')]
        )
    return found


def _asked(hosts: Hosts) -> tuple[list[Finding], frozenset[str]]:
    """What is wrong, and the hosts of which nothing else is known."""
    try:
        answers = deployments(hosts)
    except (UserError, click.ClickException, SystemExit) as error:
        echo(str(error), err=True)
        return [UNANSWERED], frozenset(host.name for host in hosts.only(()).read())
    return current(answers.answers, answers.silent)


def _told(
    targets: Sequence[Address], findings: list[Finding], unknown: frozenset[str]
) -> list[Sent]:
    with held(PLACE) as record:
        return go(targets, record, findings, unknown, time.time(), send)


def _dry(
    targets: Sequence[Address], findings: list[Finding], unknown: frozenset[str]
) -> list[Sent]:
    done = go(targets, read(PLACE), findings, unknown, time.time(), lambda *_: None)
    return [replace(one, state="would be sent") if one.state == "sent" else one for one in done]


def _line(one: Sent, *, texts: bool) -> str:
    why = f": {one.why}" if one.why else ""
    text = f"\n{one.title}\n{one.body}" if texts and one.body else ""
    return visible_text(f"{one.address}: {one.state}{why}{text}")

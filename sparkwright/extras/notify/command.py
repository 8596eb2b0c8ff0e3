"""``sparkwright notify``: tell people what begins, worsens and ends. Runs pyinfra."""

import os
import shlex
import subprocess
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
from sparkwright.config.notices import addresses
from sparkwright.config.templates import template
from sparkwright.documents.text_files import write
from sparkwright.extras.notify.notices import (
    PLACE,
    UNANSWERED,
    Sent,
    current,
    go,
    held,
    read,
    try_out,
)
from sparkwright.extras.notify.send import send
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.text.visible import visible_text

NAME = "sparkwright-notify"
_MESSAGES = Messages(__file__)
UNITS = (f"{NAME}.service", f"{NAME}.timer")


def folder() -> Path:
    """Where units of this user lie: root's are the system's."""
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home, "systemd/user")


def units(site: Path, inventory: Path, options: Sequence[str] = ()) -> dict[str, str]:
    """The units by name. Nothing secret is in them: addresses are read anew every time.

    Args:
        options: further words of the command, such as ``--user ann``.

    Raises:
        UserError: for a path that a unit can't name.
    """
    arguments = [sys.executable, "-m", "sparkwright", "notify", str(inventory), *options]
    for word in (str(site), *arguments):
        if not word.isprintable() or any(mark in word for mark in "%$\\\"'"):
            raise _MESSAGES.refusal("no-word-of-a-unit", "notify --install", word=word)
    context = {
        "site": site,
        "command": shlex.join(arguments),
        "path": os.environ.get("PATH", os.defpath),
        "user": os.geteuid() != 0,
    }
    return {name: template(f"notify/{name}.j2").render(context) for name in UNITS}


def install_timer(site: Path, inventory: Path, options: Sequence[str] = ()) -> Path:
    """Write the units and start the timer. Returns where they are.

    Raises:
        UserError: when that fails.
    """
    target = folder()
    try:
        for name, text in units(site, inventory, options).items():
            write(target / name, text)
    except OSError as error:
        raise _MESSAGES.refusal("unit", str(target), error=error) from None
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", UNITS[1])
    return target


def remove_timer() -> bool:
    """Stop the timer and take its units away. Returns whether there were any."""
    paths = [path for name in UNITS if (path := folder() / name).exists()]
    if paths:
        _systemctl("disable", "--now", UNITS[1])
        for path in paths:
            path.unlink()
        _systemctl("daemon-reload")
    return bool(paths)


def _systemctl(*arguments: str) -> None:
    command = ["systemctl", *([] if os.geteuid() == 0 else ["--user"]), *arguments]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        output = str(getattr(error, "stderr", None) or error).strip()
        facts = {"words": " ".join(arguments), "output": output}
        raise _MESSAGES.refusal("systemctl", "notify --install", **facts) from None


DOCUMENT = list[Sent]
_DRY = {"sent": "would be sent"}


@click.command("notify")
@hosts_argument
@click.option("--test", is_flag=True, help="Send a test to every address. Asks no host.")
@click.option("--dry", is_flag=True, help="Print what would be sent; send and write nothing.")
@click.option("--install", is_flag=True, help="Have a systemd timer here do it from now on.")
@click.option("--uninstall", is_flag=True, help="Take that timer away.")
@json_option
def command(
    hosts: Hosts, test: bool, dry: bool, install: bool, uninstall: bool, as_json: bool
) -> None:
    """Look at every host once, and send a notice of what is new to the addresses of `notify`.

    What the watch on the hosts holds to be wrong, services that were stopped, and hosts that do not
    answer: once when it begins, once when it worsens, once when it ends. Needs
    `pip install 'sparkwright[notify]'`. Exit code 1 when a notice could not be sent.
    """
    if uninstall:
        echo("the timer is gone" if remove_timer() else "there is no timer")
        return
    every = list(hosts.everyone.items())
    targets = addresses(every)
    if not targets:
        raise Messages(__file__).refusal("no-address", "group_data/all.py: notify")
    if install:
        folder = install_timer(Path.cwd(), hosts.inventory, connection_words())
        echo(f"{folder / UNITS[1]} looks at the fleet every two minutes")
        echo("journalctl -t sparkwright-notify says what it did")
        return
    if test:
        done = try_out(targets, send)
    else:
        try:
            answers = deployments(hosts)
            findings, unknown = current(answers.answers, list(answers.failures))
        except (UserError, click.ClickException, SystemExit) as error:
            echo(str(error), err=True)
            findings, unknown = [UNANSWERED], frozenset(name for name, _ in every)
        if dry:
            done = go(targets, read(PLACE), findings, unknown, time.time(), lambda *_: None)
            done = [replace(each, state=_DRY.get(each.state, each.state)) for each in done]
        else:
            with held(PLACE) as record:
                done = go(targets, record, findings, unknown, time.time(), send)
    if as_json:
        print_json([asdict(each) for each in done])
    for each in [] if as_json else done:
        why = f": {each.why}" if each.why else ""
        text = f"\n{each.title}\n{each.body}" if dry and each.body else ""
        echo(visible_text(f"{each.address}: {each.state}{why}{text}"))
    sys.exit(int(any(each.state == "failed" for each in done)))

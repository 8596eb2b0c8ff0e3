"""``sparkwright bootstrap``: named steps that prepare bare hosts."""

import json
import sys
from dataclasses import replace
from functools import partial
from typing import get_args

import click

from sparkwright.cli.lib import options, output, selection
from sparkwright.cli.lib.hosts import Hosts, connection_options
from sparkwright.cli.lib.progress import CONNECTION
from sparkwright.config.bootstrap_settings import Step


@click.command("bootstrap")
@selection.names_argument(Hosts)
@partial(connection_options, but="--password")
@options.option(
    "bootstrap --step",
    type=click.Choice(get_args(Step)),
    help=f"Run this step instead of the settings' steps (repeatable): {', '.join(get_args(Step))}.",
)
@options.option("bootstrap --dry")
@options.option("bootstrap --password")
@options.option("bootstrap --reboot")
@options.pyinfra_json_option
def command(
    hosts: Hosts, steps: tuple[str, ...], dry: bool, password: bool, reboot: bool, as_json: bool
) -> None:
    """Install Docker, NVIDIA's container toolkit and other requirements of a deploy on bare hosts.

    \b
    sparkwright bootstrap my-spark --password --step sudoers --step docker

    A deploy does the same for hosts whose settings name steps (`bootstrap = [...]`); this command
    is for a first run that needs sudo's password. Finished steps are not repeated.
    """
    named = any(host.data.get("bootstrap") for host in hosts.read())
    overrides = hosts.overrides
    if not steps and not named:
        raise output.MESSAGES.refusal("no-step", f"{hosts.inventory}: bootstrap")
    if steps:
        overrides = (*overrides, f"bootstrap={json.dumps(list(dict.fromkeys(steps)))}")
    if reboot:
        overrides = (*overrides, "bootstrap_reboot=True")
    if password:
        if not _asks():
            raise output.MESSAGES.refusal("password-without-terminal", "command line")
        click.get_current_context().meta.setdefault(CONNECTION, {})["same_sudo_password"] = True
    chosen = replace(hosts, overrides=overrides)
    sys.exit(chosen.show(bootstrapped, as_json=as_json, dry=dry, makes_secrets=not dry))


def bootstrapped(*_: object) -> None:
    """Carry out the steps of the settings, on each host."""
    from roles.bootstrap import bootstrap  # the site's own role takes precedence

    bootstrap()


def _asks() -> bool:
    """Return whether a terminal is available for a prompt."""
    return sys.stdin.isatty()

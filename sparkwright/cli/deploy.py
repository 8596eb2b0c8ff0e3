"""``sparkwright deploy``: run deploy.py with pyinfra and all its options."""

from itertools import takewhile
from pathlib import Path

import click

from sparkwright.cli.lib.hosts import without_secrets
from sparkwright.cli.lib.output import MESSAGES
from sparkwright.cli.lib.selection import Selection, selection

_DEPLOY = "deploy.py"
#: pyinfra accepts options anywhere, and a later version may have further options.
_ANYTHING = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


@click.command("deploy", context_settings=_ANYTHING)
@click.argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[HOST|GROUP]... [OPTIONS]..."
)
def command(arguments: tuple[str, ...]) -> None:
    """Deploy the plan: the same as `pyinfra INVENTORY deploy.py`, with its options.

    Hosts and groups must precede the first option; --limit may stand anywhere. Common options:
    --dry and --diff (change nothing), --data KEY=VALUE, --yes (no confirmation), --user, --key,
    --same-sudo-password, -v (show pyinfra's own lines). pyinfra's help lists all other options.
    Exit with 0 when every host is as planned.
    """
    without_secrets(arguments)
    if not Path(_DEPLOY).is_file():
        raise MESSAGES.refusal("no-deploy", _DEPLOY)
    # Only pyinfra can tell an option's value from a name, so names must precede options.
    names = tuple(takewhile(lambda word: not word.startswith("-"), arguments))
    options = list(arguments[len(names) :])
    inventory = [word for word in options if word.endswith(".py") and "=" not in word]
    hosts = selection(Selection, (*inventory[:1], *names), whole=True)
    limit = [word for name in hosts.limit for word in ("--limit", name)]
    before = [] if inventory else [str(hosts.inventory)]
    from sparkwright.run import pyinfra_cli

    pyinfra_cli.main([*before, *limit, *options, _DEPLOY])

"""``sparkwright deploy``: the deploy itself, by pyinfra with all of its options."""

from pathlib import Path

import click

from sparkwright.cli.lib.connecting import without_secrets
from sparkwright.cli.lib.messages import MESSAGES
from sparkwright.cli.lib.options import site_inventory

_DEPLOY = "deploy.py"
#: pyinfra takes options anywhere, also such as it gets in later versions.
_ANYTHING = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


@click.command("deploy", context_settings=_ANYTHING)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[INVENTORY] [OPTIONS]...")
def command(arguments: tuple[str, ...]) -> None:
    """Make the hosts as planned: the same as `pyinfra INVENTORY deploy.py`, with its options.

    Often used: --dry and --diff (only look), --limit HOST|GROUP|PATTERN, --data KEY=VALUE,
    --yes (do not ask), --user, --key, --same-sudo-password, -v (show pyinfra's own lines). Without
    an INVENTORY it is the site's own. The rest is in pyinfra's help. Exit code 0 when every host is
    as planned.
    """
    without_secrets(arguments)
    if not Path(_DEPLOY).is_file():
        raise MESSAGES.refusal("no-deploy", _DEPLOY)
    # Which words are values of options, only pyinfra knows: an inventory is a file of Python.
    named = any(word.endswith(".py") and "=" not in word for word in arguments)
    words = [*arguments, *([] if named else [str(site_inventory())]), _DEPLOY]
    from sparkwright.run import command_line

    command_line.main(words)

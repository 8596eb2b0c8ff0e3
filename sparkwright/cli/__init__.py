"""The command line of sparkwright, which supplements pyinfra's command line."""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.cli.lib.extras import all_commands
from sparkwright.cli.lib.output import MESSAGES, echo
from sparkwright.findings.exit_codes import MISTAKEN
from sparkwright.findings.user_error import UserError, suggest

__all__ = ["main"]

# sparkwright uses no Pydantic plugins, and a search for plugins reads the metadata of every
# installed distribution.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

#: Other tools' command names -> this tool's command, where another command has a more similar name.
_MEANT = {"destroy": "remove", "delete": "remove", "uninstall": "remove", "down": "stop"}


def sections() -> dict[str, dict[str, str]]:
    """Return every command with its help line, by section: the core's commands, then the extras'
    commands.
    """
    shown: dict[str, dict[str, str]] = {}
    for command in all_commands().values():
        if command.section:
            shown.setdefault(command.section, {})[command.name] = command.help
    return shown


class _Lazy(click.Group):
    """Group that loads only the used command's module: other modules would delay `check`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(name for name, command in all_commands().items() if command.section)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command from its module."""
        command = all_commands().get(cmd_name)
        return command.load() if command and command.section else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; the message for a misspelt command names the nearest command."""
        commands = self.list_commands(ctx)
        completing = ctx.resilient_parsing
        if args[0] not in commands and not args[0].startswith("-") and not completing:
            meant = _MEANT.get(args[0], args[0])
            ctx.fail(f"{args[0]!r} is not a command: {suggest(meant, commands)}")
        asks = args[0] in commands and all_commands()[args[0]].asks_hosts
        if asks and not completing and not {"-h", "--help"} & set(args):
            gc.disable()  # until the plan is made (run/site.py): saves 0.1 s
            import_module("sparkwright.run")  # applies gevent's patches before a command loads ssl
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, in the order in which a user needs them."""
        for title, commands in sections().items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def main(self, *args: Any, **extra: Any) -> Any:
        """Report a failed write (full disk, no permission) like every other mistake."""
        try:
            try:
                return super().main(*args, **extra)
            finally:
                gc.enable()
                sys.stdout.flush()  # an error at Python's exit can't be caught
        except OSError as error:
            if (gone := isinstance(error, BrokenPipeError)) is False:
                where, reason = str(error.filename or "output"), error.strerror or error
                with suppress(OSError):
                    _tell(MESSAGES.refusal("unwritable", where, reason=reason))
            with suppress(OSError, ValueError):  # the output can't be written
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141 if gone else MISTAKEN)

    def invoke(self, ctx: click.Context) -> Any:
        """End with a message and exit code 2 after a user's mistake, never with a traceback."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            _tell(error)
            sys.exit(MISTAKEN)
        except BrokenPipeError:
            sys.exit(141)
        except KeyboardInterrupt:
            # Shells report the same exit code for a program that SIGINT ended.
            echo("\nstopped", err=True)
            sys.exit(130)


def _tell(error: UserError) -> None:
    echo(f"{click.style('-->', fg='red')} {error}", err=True)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="sparkwright")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Set up boxes as model servers, and operate them.

    `sparkwright up me@my-spark.local` is the first command: it sets up a box until services answer.
    `sparkwright deploy` brings the hosts into the planned state, like pyinfra INVENTORY deploy.py.

    Commands accept names of hosts (HOST, a GROUP, a pattern such as 'spark-*') and of services
    (HOST/SERVICE, or SERVICE on every host with this service). Without a name, a command applies to
    every host. An argument that ends in .py is the inventory; the default is SPARKWRIGHT_INVENTORY,
    or the site's inventory.

    Run commands in the site's folder, which `up` or `init` makes. Shell completion: `eval
    "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"` (or zsh_source, fish_source). Exit
    codes: 0 success, 1 a finding or failure, 2 unusable input or a mistake in the plan.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # no-color.org
        ctx.color = False
    # As in pyinfra, an inventory may import modules of its site.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)

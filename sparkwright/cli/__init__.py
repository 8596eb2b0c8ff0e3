"""The command line beside pyinfra's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.findings.user_error import UserError

__all__ = ["main"]


_HERE = Path(__file__).parent


class _Lazy(click.Group):
    """Loads a command's module on use, so that `check` does not wait for the others."""

    _commands = tuple(
        sorted(path.stem.removesuffix("_command") for path in _HERE.glob("*_command.py"))
    )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, sorted."""
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, from the module of its name."""
        if cmd_name not in self._commands:
            return None
        module = __import__(f"sparkwright.cli.{cmd_name}_command", fromlist=["command"])
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """A user's mistake ends with a message and exit code 2, never with a traceback."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.echo(f"{click.style('-->', fg='red')} {error}", err=True)
            sys.exit(2)
        except BrokenPipeError:
            sys.exit(141)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__, prog_name="sparkwright")
def main() -> None:
    """Look at a fleet's plan without touching a host; look after what lies on the hosts.

    Hosts are made so by pyinfra: pyinfra inventory/lab.py deploy.py

    Run it in the site's folder, which `sparkwright init` makes. Shell completion: `eval
    "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"` (zsh_source and fish_source too). Exit
    codes: 0 all well, 1 something was found, 2 the input can't be used.
    """
    # As pyinfra has it: an inventory may import modules of its site.
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)

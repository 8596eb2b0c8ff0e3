"""The command line beside pyinfra's own: everything that needs no host."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from sparkwright.problems import UserError

__all__ = ["main"]


class _Lazy(click.Group):
    """Loads a command's module when it is asked for: `check` shall not wait for the others."""

    _commands = ("advise", "catalog", "check", "lock", "plan", "render", "verify")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, sorted."""
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, from the module of its name."""
        if cmd_name not in self._commands:
            return None
        module = __import__(f"sparkwright.cli.{cmd_name}_command", fromlist=["command"])
        command: click.Command = module.command
        command.callback = told(command.callback) if command.callback else None
        return command


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's mistake ends with a message and exit code 2, never with a traceback."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            click.echo(f"{click.style('-->', fg='red')} {error}", err=True)
            sys.exit(2)
        except BrokenPipeError:
            sys.exit(141)

    return wrapped


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=None, version="0.1.0", prog_name="sparkwright")
def main() -> None:
    """Look at a fleet's plan without touching a host.

    Hosts are changed by pyinfra: pyinfra inventory/lab.py deploy.py

    Run it in the project's folder. Shell completion: `eval "$(_SPARKWRIGHT_COMPLETE=bash_source
    sparkwright)"` (zsh_source and fish_source too). Exit codes: 0 all well, 1 something was found,
    2 the input can't be used.
    """

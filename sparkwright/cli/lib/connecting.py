"""pyinfra's own options of connection and sudo, for every command that goes to hosts."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.cli.lib.hosts import Hosts, given
from sparkwright.cli.lib.progress import CONNECTION
from sparkwright.cli.lib.selection import names_argument
from sparkwright.findings.user_error import UserError, mistake

_Command = TypeVar("_Command", bound=Callable[..., Any])

_ON_A_COMMAND_LINE = "a password on a command line is read by every user of this machine"
_PROMPT = "--ssh-password-prompt asks for it, or reads it from standard input"
_KEY = "leave it out: pyinfra asks where a key needs one, and ssh-agent keeps it"
#: Names of pyinfra's options that hold a secret -> the alternative.
SECRETS = {
    "--ssh-password": _PROMPT, "--password": _PROMPT,
    "--ssh-key-password": _KEY, "--key-password": _KEY,
}  # fmt: skip
#: pyinfra's names, the placeholder of the value (None: a flag), and one sentence.
OPTIONS: list[tuple[list[str], str | None, str]] = json.loads(
    Path(__file__).with_name("connection.json").read_text(encoding="utf-8")
)


def hosts_argument(command: _Command) -> _Command:
    """``[NAME]...`` of whole hosts with all of the connection, as ``hosts``."""
    return connection_options(names_argument(Hosts)(command))


def services_argument(command: _Command) -> _Command:
    """``[NAME]...`` of hosts and services with all of the connection, as ``hosts``."""
    return connection_options(names_argument(Hosts, services=True)(command))


def connection_options(command: _Command, but: str | None = None) -> _Command:
    """pyinfra's options of connection and sudo.

    The command has no parameters for these options: ``hosts.given`` has them.

    Args:
        but: a name that has another meaning in this command.
    """

    def ours() -> None: ...

    for name in SECRETS:
        if name != but:
            click.option(name, hidden=True, expose_value=False, callback=_refused)(ours)
    meant = [
        ([name for name in names if name != but], value, text) for names, value, text in OPTIONS
    ]
    _keeping(ours, meant)
    # Last in the help, wherever the decorator is: click prints the last options first.
    own = getattr(command, "__click_params__", [])
    setattr(command, "__click_params__", [*getattr(ours, "__click_params__"), *own])  # noqa: B009, B010
    return command


def ssh_options(command: _Command) -> _Command:
    """Add the connection options that the system's own ssh takes, too (``cli/ssh.py``)."""
    _keeping(command, OPTIONS[:3])
    return command


def _keeping(command: Callable[..., Any], options: Sequence[tuple[Any, Any, str]]) -> None:
    for names, metavar, text in reversed(options):
        click.option(
            *names,
            metavar=metavar,
            is_flag=metavar is None,
            type=click.IntRange(1) if metavar in ("PORT", "NUMBER") else None,
            expose_value=False,
            callback=_kept,
            help=text,
        )(command)


def connection_words() -> list[str]:
    """Connection and sudo options of the running command, as words for another command."""
    arguments = []
    for name, value in given().items():
        arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return arguments


def without_secrets(arguments: Sequence[str]) -> None:
    """Validate words that are passed to pyinfra unchanged.

    Raises:
        UserError: names each password among them.
    """
    names = [word.partition("=")[0] for word in arguments]
    if problems := [_secret(name) for name in dict.fromkeys(names) if name in SECRETS]:
        raise UserError(problems)


def _kept(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(CONNECTION, {})[option.name] = value


def _refused(_: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        raise UserError([_secret(option.opts[0])])


def _secret(name: str) -> Any:
    return mistake(f"command line: {name}", _ON_A_COMMAND_LINE, SECRETS[name])

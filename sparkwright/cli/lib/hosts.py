"""Hosts of a command, which pyinfra queries, changes and watches in this process; and pyinfra's
connection and sudo options for every command that connects to hosts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from sparkwright.cli.lib import progress, selection
from sparkwright.cli.lib.output import echo
from sparkwright.findings.exit_codes import MISTAKEN
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.results.answers import Answers
from sparkwright.text.visible import paragraph, visible

if TYPE_CHECKING:
    from sparkwright.run.session import Change, Question, Session


T = TypeVar("T")


class Hosts(selection.Selection):
    """Hosts to query and to change."""

    def ask(self, question: Question[T], **options: Any) -> Answers[T]:
        """Query all hosts in parallel; print hosts without an answer on standard error.

        Args:
            options: ``planless``, ``makes_secrets`` and ``password`` of `session`. Without
                ``planless``, a faulty plan ends the command with exit code 2 before any connection;
                with ``planless``, one line on standard error names the fault.
        """
        with self.session(waiting=True, **options) as session:
            answers = session.ask(question)
        return reported(answers)

    def change(self, change: Change[T], **options: bool) -> Answers[T]:
        """Run operations on every host; options and answers are the same as for `ask`."""
        with self.session(waiting=True, **options) as session:
            answers = session.change(change)
        return reported(answers)

    def show(self, change: Change[None], *, as_json: bool, **options: Any) -> int:
        """Run operations and print pyinfra's output; return the exit code.

        Args:
            options: options of `session`.
        """
        with self.session(shown=True, **options) as session:
            if session.run.broken:
                echo(session.run.broken, err=True)
            return int(not session.show(change, as_json=as_json))

    @contextmanager
    def session(
        self, *, shown: bool = False, waiting: bool = False, diff: bool = False, **run: Any
    ) -> Iterator[Session]:
        """Plan for the hosts; the first query connects to them.

        Args:
            shown: whether pyinfra's lines about every host go to standard error.
            waiting: whether a terminal shows the number of answers and the hosts without an answer.
            diff: whether pyinfra shows the texts of changed files.
            run: ``dry``, ``planless``, ``makes_secrets`` and ``switches`` of ``Invocation``;
                ``password`` is sudo's password on these hosts, a Secret or None.
        """
        from sparkwright.run.session import session
        from sparkwright.run.site import Invocation

        connection = {**given(), **({"diff": True} if diff else {})}
        if password := run.pop("password", None):
            connection["sudo_password"] = password.value
        invocation = Invocation(str(self.inventory), self.overrides, self.limit, **run)
        verbose = "verbose" in progress.given()
        notices = progress.shown() if waiting else nullcontext(lambda *_: None)
        with (
            notices as notice,
            session(
                invocation, connection, shown=shown or verbose, frames=verbose, notice=notice
            ) as opened,
        ):
            yield opened


def reported(answers: Answers[T]) -> Answers[T]:
    """Print faults and silent hosts on standard error, and return the answers."""
    if answers.broken:
        echo(answers.broken, err=True)
    for host, reason in answers.failures.items():
        complain(host, paragraph(reason))
    return answers


def complain(host: str, text: str) -> None:
    """Print a host's fault on standard error; the text is already escaped."""
    echo(f"{click.style(host, fg='red')}: {text}", err=True)


def finish(answers: Answers[Any], *, failed: bool = False, unknown: bool = False) -> NoReturn:
    """Exit with 0 only if every host answered without a failure.

    Args:
        unknown: whether the command line has an unknown name; the exit code is then 2.
    """
    sys.exit(MISTAKEN if unknown else int(failed or bool(answers.failures) or not answers.answers))


def misspelt(services: Sequence[str], answers: Iterable[Iterable[str]]) -> list[str]:
    """Print the services that no host has, each with the nearest name, and return them.

    Args:
        answers: names of services of each host that answered.
    """
    each_host = list(answers)
    names = sorted({name for each in each_host for name in each})
    unknown = [name for name in services if name not in names] if each_host else []
    for name in unknown:
        line = f"no host has a service {visible(name, 80)!r}: {visible(suggest(name, names), 400)}"
        echo(click.style(line, fg="red"), err=True)
    return unknown


def given() -> dict[str, Any]:
    """Return the running command's connection and sudo options, by pyinfra's names."""
    kept = progress.given().items()
    return {name: value for name, value in kept if name not in ("verbose", "quiet")}


_Command = TypeVar("_Command", bound=Callable[..., Any])

_ON_A_COMMAND_LINE = "a password on a command line, which every user of this machine can read"
_PROMPT = "use --ssh-password-prompt, which prompts for the password or reads standard input"
_KEY = "leave the option out: pyinfra prompts for the key's password, or ssh-agent holds the key"
#: Names of pyinfra's options with a secret as value -> the alternative.
SECRETS = {
    "--ssh-password": _PROMPT, "--password": _PROMPT,
    "--ssh-key-password": _KEY, "--key-password": _KEY,
}  # fmt: skip
#: Each option's names in pyinfra, placeholder of its value (None: a flag), and help text.
OPTIONS: list[tuple[list[str], str | None, str]] = json.loads(
    Path(__file__).with_name("connection.json").read_text(encoding="utf-8")
)


def hosts_argument(command: _Command) -> _Command:
    """Add ``[NAME]...`` for whole hosts with all connection options, as parameter ``hosts``."""
    return connection_options(selection.names_argument(Hosts)(command))


def services_argument(command: _Command) -> _Command:
    """Add ``[NAME]...`` for hosts and services with all connection options, as ``hosts``."""
    return connection_options(selection.names_argument(Hosts, services=True)(command))


def connection_options(command: _Command, but: str | None = None) -> _Command:
    """Add pyinfra's connection and sudo options.

    The command has no parameters for these options: ``hosts.given`` returns them.

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
    # The help lists these options last, wherever the decorator stands: click reverses this list.
    own = getattr(command, "__click_params__", [])
    setattr(command, "__click_params__", [*getattr(ours, "__click_params__"), *own])  # noqa: B009, B010
    return command


def ssh_options(command: _Command) -> _Command:
    """Add the connection options that also apply to the system's own ssh (``cli/lib/ssh.py``)."""
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
    """Return the running command's connection and sudo options as arguments of a command."""
    arguments = []
    for name, value in given().items():
        arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return arguments


def without_secrets(arguments: Sequence[str]) -> None:
    """Validate arguments that are passed to pyinfra unchanged.

    Raises:
        UserError: an argument is a password; the message names each password option.
    """
    names = [word.partition("=")[0] for word in arguments]
    if problems := [_secret(name) for name in dict.fromkeys(names) if name in SECRETS]:
        raise UserError(problems)


def _kept(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(progress.CONNECTION, {})[option.name] = value


def _refused(_: click.Context, option: click.Parameter, value: Any) -> None:
    if value is not None:
        raise UserError([_secret(option.opts[0])])


def _secret(name: str) -> Any:
    return mistake(f"command line: {name}", _ON_A_COMMAND_LINE, SECRETS[name])

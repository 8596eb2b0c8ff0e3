"""Hosts that a command means: asked, changed and watched through pyinfra, in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from sparkwright.cli.lib import progress
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.selection import Selection
from sparkwright.findings.exit_codes import MISTAKEN
from sparkwright.findings.user_error import suggest
from sparkwright.results.answers import Answers
from sparkwright.text.visible import paragraph, visible

if TYPE_CHECKING:
    from sparkwright.run.session import Change, Question, Session

T = TypeVar("T")


class Hosts(Selection):
    """Hosts to ask and to change."""

    def ask(self, question: Question[T], **options: Any) -> Answers[T]:
        """Ask every host, side by side. Hosts without an answer are named on standard error.

        Args:
            options: ``planless``, ``makes_secrets`` and ``password`` of `session`. Without
                ``planless`` a broken plan ends the command with exit code 2 before any connection;
                with it, one line on standard error names the fault.
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
        """Plan for the hosts; the first question connects to them.

        Args:
            shown: whether pyinfra's lines on every host go to standard error.
            waiting: whether a terminal shows which hosts have answered.
            diff: whether the texts of files that change are shown.
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
    """The answers, after printing faults and silent hosts on standard error."""
    if answers.broken:
        echo(answers.broken, err=True)
    for host, reason in answers.failures.items():
        complain(host, paragraph(reason))
    return answers


def complain(host: str, text: str) -> None:
    """Print a host's fault on standard error; the text is already escaped."""
    echo(f"{click.style(host, fg='red')}: {text}", err=True)


def finish(answers: Answers[Any], *, failed: bool = False, unknown: bool = False) -> NoReturn:
    """Exit: with 0 only if every host answered without a failure.

    Args:
        unknown: whether the command line has an unknown name, which has its own exit code.
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
    """Options of connection and sudo of the command that runs, by pyinfra's names."""
    kept = progress.given().items()
    return {name: value for name, value in kept if name not in ("verbose", "quiet")}

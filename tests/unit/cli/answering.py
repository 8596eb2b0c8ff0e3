"""Hosts with answers that a test sets, without a plan and without a connection."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkwright.cli import main
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.results.answers import Answers


@dataclass(frozen=True)
class Asked:
    """A request to hosts: the name of its program or function, and its target."""

    name: str
    hosts: Hosts
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]


#: Answers by host; an exception is raised by the session.
Answering = Callable[[Asked], Mapping[str, Any] | Answers[Any]]


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answering) -> list[Asked]:
    """Give hosts these answers; return the requests to the hosts."""
    asked: list[Asked] = []

    def ask(hosts: Hosts, question: Any, **options: Any) -> Answers[Any]:
        arguments = question.keywords if isinstance(question, partial) else {}
        function = question.func if isinstance(question, partial) else question
        name = arguments.get("program", function).__name__.rpartition(".")[2]
        asked.append(Asked(name, hosts, arguments, options))
        result = answer(asked[-1])
        return result if isinstance(result, Answers) else Answers(dict(result))

    @contextmanager
    def session(hosts: Hosts, **_: Any) -> Iterator[Any]:
        def some(question: Any, only: Any = None) -> Answers[Any]:
            chosen = hosts if only is None else hosts.only(only)
            return ask(chosen, question)

        yield SimpleNamespace(ask=some, run=SimpleNamespace(broken=None))

    def show(hosts: Hosts, change: Any, **options: Any) -> int:
        return int(bool(ask(hosts, change, **options).failures))

    for way in ("ask", "change"):
        monkeypatch.setattr(Hosts, way, ask)
    monkeypatch.setattr(Hosts, "show", show)
    monkeypatch.setattr(Hosts, "session", session)
    return asked


def silent(answers: Mapping[str, Any], *hosts: str) -> Answers[Any]:
    """Answers, and hosts without an answer."""
    return Answers(dict(answers), dict.fromkeys(hosts, "no answer"))


def run(*arguments: str, **options: Any) -> Result:
    """A command's output and exit code; the command never ends with a traceback."""
    done = CliRunner().invoke(main, list(arguments), prog_name="sparkwright", **options)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def exits(code: int, *arguments: str, **options: Any) -> Result:
    """A command's output; the command must end with this exit code."""
    done = run(*arguments, **options)
    assert done.exit_code == code, done.output
    return done

"""Sessions of commands: planned, connected, queried, watched and changed, with the real pyinfra."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
import pytest
from pyinfra.api import util
from pyinfra.connectors import local, ssh
from pyinfra.connectors import util as connecting
from pyinfra.context import ctx_host
from pyinfra.operations import server

from sparkwright.config.parse import CONNECTION_KEYS
from sparkwright.facts.asking import HostError
from sparkwright.findings.user_error import UserError
from sparkwright.host.lock import LockAnswer
from sparkwright.run import ending
from sparkwright.run import session as sessions
from sparkwright.run.session import Session, session
from sparkwright.run.site import Invocation
from sparkwright.run.state import HostRun
from tests.operations.emergencies import host, unreachable, write_site

Opening = Callable[..., AbstractContextManager[Session]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    """Function that opens a session over two hosts that answer and a host that is off; their plan
    is broken."""
    keys = ("fake_delay", "fake_delay_jitter", "fake_responses")
    monkeypatch.setattr("sparkwright.config.parse.CONNECTION_KEYS", (*CONNECTION_KEYS, *keys))
    # pyinfra's command line patches the process that imports it, here the tests' process.
    monkeypatch.setattr("gevent.monkey.patch_all", lambda **_: None)
    # Hooks of a separate process, removed after the test.
    for module, names in (
        (util, ("stack", "getframeinfo")),
        (connecting, ("read_buffer",)),
        (ssh, ("execute_command_with_sudo_retry", "get_private_key")),
        (local, ("execute_command_with_sudo_retry",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(sessions, "_set_output", lambda **_: None)
    held = LockAnswer(True)
    sparks = (host(name, lock=held) for name in ("spark-1", "spark-2"))
    write_site(tmp_path, *sparks, unreachable("rtx-1"))
    (tmp_path / "config.py").unlink()
    monkeypatch.chdir(tmp_path)

    def opening(*limit: str, **invocation: Any) -> AbstractContextManager[Session]:
        events = invocation.pop("events", [])
        asked = Invocation("inventory/lab.py", limit=limit, planless=True, **invocation)
        return session(asked, notice=lambda name, event: events.append((name, event)))

    yield opening
    logging.getLogger("pyinfra").filters.clear()


NAMES = ["@fake/spark-1", "@fake/spark-2"]


def test_every_host_is_queried_and_a_silent_host_has_a_reason(opened: Opening) -> None:
    events: list[tuple[str, str]] = []

    def question(host: Any, run: HostRun) -> str:
        if host.name == NAMES[1]:
            raise HostError("it broke")
        return run.name

    with opened(events=events) as opening:
        answers = opening.ask(question)
        assert answers.answers == {NAMES[0]: NAMES[0]}
        assert list(answers.failures) == [NAMES[1], "rtx-1"]
        assert answers.failures[NAMES[1]] == "it broke"
        assert "not reached" in answers.failures["rtx-1"]
        # A host that failed gets no further request.
        assert list(opening.ask(lambda host, _: host.name).answers) == NAMES[:1]
    assert (NAMES[0], "answered") in events
    assert (NAMES[1], "failed") in events
    assert ("rtx-1", "not reached") in events


def test_a_query_can_be_limited_to_some_hosts(opened: Opening) -> None:
    with opened() as opening:
        answers = opening.ask(lambda host, _: host.name, only=NAMES[1:])
    assert list(answers.answers) == NAMES[1:]
    assert answers.failures[NAMES[0]] == "no answer"


def test_an_unexpected_exception_ends_the_session(opened: Opening) -> None:
    def question(host: Any, run: HostRun) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), opened() as opening:
        opening.ask(question)


def test_a_watch_yields_answers_as_they_arrive(opened: Opening) -> None:
    def watch(host: Any, run: HostRun, take: Callable[[int], None]) -> None:
        take(1)
        if host.name == NAMES[1]:
            raise HostError("gone")
        take(2)

    with opened(*NAMES) as opening:
        seen = [event for event in opening.watch(watch) if event is not None]
        assert sorted(seen) == [(NAMES[0], 1), (NAMES[0], 2), (NAMES[1], 1)]
        assert opening.answers({}).failures[NAMES[1]] == "gone"


def _touched(host: Any, run: HostRun, answers: dict[str, str]) -> None:
    server.shell(name="Touch", commands=["touch x"])
    answers[host.name] = host.name


@pytest.mark.parametrize("dry", [True, False])
def test_a_dry_session_prepares_changes_and_runs_no_change(opened: Opening, dry: bool) -> None:
    with opened(*NAMES, dry=dry) as opening:
        assert list(opening.change(_touched).answers) == NAMES
        for each in opening.hosts:
            connector: Any = each.connector
            commands = [command for command in connector.executed_commands if "touch x" in command]
            assert len(commands) == (0 if dry else 1)


def test_a_session_changes_hosts_and_prints_pyinfras_output(
    opened: Opening, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(host: Any, run: HostRun, _: dict[str, None]) -> None:
        assert ctx_host.get() is host
        server.shell(name="Touch", commands=["touch x"])

    with opened(*NAMES) as opening:
        assert opening.show(change, as_json=True)
    assert "results" in json.loads(capsys.readouterr().out)
    with opened() as opening:  # a host that is off is a failure
        assert not opening.show(change, as_json=True)
    with opened(*NAMES, dry=True) as opening:
        opening.show(change, as_json=True)
        pending = [list(ending._pending(name, opening.run.hosts[name])) for name in NAMES]
    assert pending == [["Touch"], ["Touch"]]


@pytest.mark.parametrize(
    ("invocation", "error"),
    [
        ({"limit": ("nobody",)}, UserError),
        ({"overrides": ("=",)}, UserError),
        ({"inventory": "inventory/none.py"}, UserError),
    ],
    ids=str,
)
def test_a_mistake_is_reported_before_any_connection(
    opened: Opening, invocation: dict[str, Any], error: type[Exception]
) -> None:
    asked = Invocation(**{"inventory": "inventory/lab.py", "planless": True, **invocation})
    with pytest.raises((error, click.ClickException)), session(asked):
        pytest.fail("it was opened")

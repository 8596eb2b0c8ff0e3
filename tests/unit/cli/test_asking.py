"""Asking before something is changed, and showing who has answered."""

from __future__ import annotations

import io
import threading
import time

import click
import pytest
from click.testing import CliRunner

from sparkwright.cli import main
from sparkwright.cli.lib import progress
from tests.unit.cli.answering import Asked, answering


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    return answering(monkeypatch, lambda _: {})


@pytest.mark.parametrize("option", ["--yes", "--dry"])
def test_a_rollback_is_done_or_looked_at(became: list[Asked], option: str) -> None:
    done = CliRunner().invoke(main, ["rollback", "inventory/lab.py", option])
    assert done.exit_code == 0, done.output
    (run,) = became
    assert run.name == "rollback"
    assert run.options == {
        "as_json": False, "planless": True, "dry": option == "--dry", "switches": True
    }  # fmt: skip


@pytest.mark.parametrize(
    "words", [("rollback", "inventory/lab.py"), ("models", "prune", "inventory/lab.py"),
              ("remove", "inventory/lab.py")], ids=" ".join,
)  # fmt: skip
def test_where_nobody_can_answer_nothing_is_done(
    became: list[Asked], words: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, became) == (2, [])
    assert "add --yes" in done.output


def test_who_says_yes_is_obeyed(became: list[Asked]) -> None:
    done = CliRunner().invoke(main, ["rollback", "inventory/lab.py", "--to", "abc"], input="y\n")
    assert "Switch every service of all hosts of inventory/lab.py back to abc?" in done.output
    assert len(became) == 1


def test_who_has_answered_and_who_is_waited_for() -> None:
    events = {"a": "answered", "b\x1b[2J": "asked", "c": "not reached"}
    assert progress.line(events, 4.2) == ("2 of 3 hosts done, waiting for b\\x1b[2J (4 s)")
    assert progress.line({}, 1.0) == "planning and connecting (1 s)"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_it_and_is_clean_after(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    with click.Context(click.Command("status")) as context:
        context.meta["sparkwright.verbosity"] = {"quiet"} if quiet else set()
        with progress.shown():
            time.sleep(0.3)
    assert ("planning and connecting" in terminal.getvalue()) is not quiet
    assert quiet or terminal.getvalue().endswith("\r\x1b[K")
    assert threading.active_count() < 50


def test_nothing_is_shown_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.StringIO()
    monkeypatch.setattr("sys.stderr", piped)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.shown():
        time.sleep(0.05)
    assert piped.getvalue() == ""

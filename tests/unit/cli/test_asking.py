"""Asking before something is changed, and showing who has answered."""

from __future__ import annotations

import io
import json
import threading
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sparkwright.cli import main
from sparkwright.cli import rollback as rollback_command
from sparkwright.cli.lib import progress


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []
    monkeypatch.setattr(rollback_command, "become", found.append)
    return found


@pytest.mark.parametrize(("option", "passed"), [("--yes", "--yes"), ("--dry", "--dry")])
def test_a_rollback_is_done_or_looked_at(became: list[list[str]], option: str, passed: str) -> None:
    done = CliRunner().invoke(main, ["rollback", "inventory/lab.py", option])
    assert done.exit_code == 0, done.output
    (words,) = became
    assert passed in words
    assert ("--yes" in words) is (option == "--yes")
    assert "planless=true" in words


@pytest.mark.parametrize(
    "words", [("rollback", "inventory/lab.py"), ("models", "prune", "inventory/lab.py"),
              ("remove", "inventory/lab.py")], ids=" ".join,
)  # fmt: skip
def test_where_nobody_can_answer_nothing_is_done(
    became: list[list[str]], words: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, became) == (2, [])
    assert "add --yes" in done.output


def test_who_says_yes_is_obeyed(became: list[list[str]]) -> None:
    done = CliRunner().invoke(main, ["rollback", "inventory/lab.py", "--to", "abc"], input="y\n")
    assert "Switch every service of all hosts of inventory/lab.py back to abc?" in done.output
    assert len(became) == 1


def test_the_former_name_of_verify_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparkwright.cli import models as models_command

    monkeypatch.setattr(models_command, "become", lambda _: None)
    done = CliRunner().invoke(main, ["models", "verify", "inventory/lab.py"])
    assert "models verify is called verify now" in done.output
    assert "verify" not in CliRunner().invoke(main, ["models", "--help"]).output


def test_who_has_answered_and_who_is_waited_for() -> None:
    happened = [
        {"plan": "broken"}, {"host": "a", "event": "asked"}, {"host": "b\x1b[2J", "event": "asked"},
        {"host": "c", "event": "not reached"}, {"host": "a", "event": "answered"},
    ]  # fmt: skip
    assert progress.line(happened, 4.2) == ("2 of 3 hosts done, waiting for b\\x1b[2J (4 s)")
    assert progress.line([], 1.0) == "planning and connecting (1 s)"


def test_half_a_line_is_no_event(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    assert progress.events(file) == []
    file.write_text(json.dumps({"host": "a", "event": "asked"}) + '\n{"host": ')
    assert progress.events(file) == [{"host": "a", "event": "asked"}]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_it_and_is_clean_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    with click.Context(click.Command("status")) as context:
        context.meta["sparkwright.said"] = {"quiet"} if quiet else set()
        with progress.shown(tmp_path / "none"):
            time.sleep(0.3)
    assert ("planning and connecting" in terminal.getvalue()) is not quiet
    assert quiet or terminal.getvalue().endswith("\r\x1b[K")
    assert threading.active_count() < 50


def test_nothing_is_shown_where_nobody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.StringIO()
    monkeypatch.setattr("sys.stderr", piped)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.shown(tmp_path / "none"):
        time.sleep(0.05)
    assert piped.getvalue() == ""

"""Confirmation before a change, and the list of hosts that have answered."""

import io

import click
import pytest

from sparkwright.cli.lib import progress
from tests.unit.cli.answering import Asked, answering, exits, run


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    return answering(monkeypatch, lambda _: {})


@pytest.mark.parametrize("option", ["--yes", "--dry"])
def test_a_rollback_is_executed_or_only_shown(became: list[Asked], option: str) -> None:
    exits(0, "rollback", "inventory/lab.py", option)
    (change,) = became
    assert change.name == "rollback"
    assert change.options == {
        "as_json": False, "planless": True, "dry": option == "--dry", "switches": True
    }  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [("rollback", "inventory/lab.py"), ("models", "prune", "inventory/lab.py"),
              ("remove", "inventory/lab.py")], ids=" ".join,
)  # fmt: skip
def test_no_change_is_made_without_a_terminal(
    became: list[Asked], arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert (done.exit_code, became) == (2, [])
    assert "add --yes" in done.output


def test_a_confirmation_starts_the_change(became: list[Asked]) -> None:
    done = run("rollback", "inventory/lab.py", "--to", "abc", input="y\n")
    assert "Switch every service of all hosts of inventory/lab.py back to abc?" in done.output
    assert len(became) == 1


def test_progress_shows_the_number_of_finished_hosts_and_names_waiting_hosts() -> None:
    events = {"a": "answered", "b\x1b[2J": "asked", "c": "not reached"}
    assert progress.line(events) == "2 of 3 hosts done, waiting for b\\x1b[2J"
    assert progress.line({}) == "planning and connecting"
    assert progress.line({"a": "qwen: compiling for 3 s"}) == (
        "0 of 1 hosts done, waiting for a (qwen: compiling for 3 s)"
    )


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "verbosity", "shown"),
    [(_Terminal, set(), True), (_Terminal, {"quiet"}, False), (io.StringIO, set(), False)],
    ids=["terminal", "quiet", "piped"],
)
def test_progress_is_shown_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], verbosity: set[str], shown: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    error = stream()
    monkeypatch.setattr("sys.stderr", error)
    with click.Context(click.Command("status")) as context:
        context.meta[progress.CONNECTION] = dict.fromkeys(verbosity, True)
        with progress.shown() as notice:
            notice("spark-1", "asked")
            notice("spark-2", "compiling\x1b[2J")
    assert ("waiting for spark-1" in error.getvalue()) is shown
    lines = [] if shown or verbosity else ["spark-2: compiling\\x1b[2J"]
    assert shown or error.getvalue().splitlines() == lines
    # The drawn text is erased.
    assert not shown or error.getvalue().rstrip().endswith("\x1b[2K")

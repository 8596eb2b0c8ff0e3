"""Commands print at most 80 columns in a terminal of 80 columns, and break no word."""

import re
from pathlib import Path

import click
import pytest

from docs.generate.commands import commands
from tests.tables import Tables
from tests.unit.cli.fleet_of_five import COMMANDS, fleet, run

cases = Tables(__file__)

__all__ = ["fleet"]
#: Configuration, certificates and YAML are data: their lines must not be wrapped.
_DATA = {"ca", "catalog schema", "catalog show", "endpoints"}


def _cells(text: str) -> list[str]:
    return click.unstyle(text).split()


@pytest.mark.parametrize("command_line", [command for command in COMMANDS if command not in _DATA])
def test_no_line_is_wider_than_the_terminal(
    command_line: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = run(COMMANDS[command_line]).output
    for line in output.splitlines():
        unbreakable = len(line.split()) <= 1 or (
            len(line.split()) == 2 and len(line.split()[0]) < 12
        )
        assert len(line) <= 80 or unbreakable, line


@cases("command")
def test_no_word_is_broken(command: str, fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "4000")
    wide = set(_cells(run(COMMANDS[command]).output))
    monkeypatch.setenv("COLUMNS", "80")
    assert set(_cells(run(COMMANDS[command]).output)) == wide


@cases("command")
def test_hosts_with_equal_cells_share_a_row(
    command: str, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = run(COMMANDS[command]).output
    assert "spark-1, spark-2, spark-3" in output
    assert not re.search(r"^(error: \S+ )?spark-3", output, re.M)


@pytest.mark.parametrize(
    ("command_line", "command"), [(arguments, item) for arguments, item, _ in commands()]
)
def test_help_fits_in_80_columns(command_line: str, command: click.Command) -> None:
    context = click.Context(command, info_name=f"sparkwright {command_line}", terminal_width=80)
    assert all(len(line) <= 80 for line in command.get_help(context).splitlines())

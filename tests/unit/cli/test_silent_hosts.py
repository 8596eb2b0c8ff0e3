"""A host that does not answer is an error to every command: nobody knows what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkwright.cli import main
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.removal import RemovalAnswer
from tests.unit.checks.service import builders as ill
from tests.unit.cli.answering import answering, silent
from tests.unit.results.test_status import answer

USAGE = DiskUsage((), ())
#: A command, and the answer of a healthy host.
COMMANDS = [
    (("status",), answer()),
    (("history",), answer()),
    (("diff",), answer()),
    (("doctor",), ill.spark()),
    (("models", "list"), USAGE),
    (("models", "prune", "--yes"), USAGE),
    (("remove", "--yes"), RemovalAnswer(("the service",), ())),
]


@pytest.mark.parametrize("missing", [[], ["rtx-1"]], ids=["all answer", "one is silent"])
@pytest.mark.parametrize(("words", "well"), COMMANDS, ids=lambda one: str(one)[:20])
def test_no_command_takes_silence_for_all_being_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: Any, well: Any, missing: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answering(monkeypatch, lambda _: silent({"spark-1": well}, *missing))
    done = CliRunner().invoke(main, [*words, "inventory/lab.py"])
    assert done.exit_code == int(bool(missing)), done.output
    if words[0] == "diff":
        assert "no difference: spark-1\n" in done.output
    if words[0] == "remove" and missing:
        assert "rtx-1: nothing was removed; run this again" in done.output

"""A host that does not answer is an error to every command: nobody knows what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkwright.cli import (
    doctor as doctor_command,
)
from sparkwright.cli import (
    main,
)
from sparkwright.cli import (
    models as models_command,
)
from sparkwright.cli import (
    remove as remove_command,
)
from sparkwright.cli.lib import deployments
from sparkwright.host.lib.records import encode
from tests.unit.checks.service import builders as ill
from tests.unit.results.test_status import answer

USAGE: dict[str, Any] = {"things": [], "foreign": []}
REMOVED = {"done": ["the service"], "left": []}
#: A command, where it asks, and what a well host answers.
COMMANDS = [
    (("status",), deployments, encode(answer())),
    (("history",), deployments, encode(answer())),
    (("diff",), deployments, encode(answer())),
    (("doctor",), doctor_command, encode(ill.spark())),
    (("models", "list"), models_command, USAGE),
    (("models", "prune", "--yes"), models_command, USAGE),
    (("remove", "--yes"), remove_command, REMOVED),
]


@pytest.mark.parametrize("silent", [[], ["rtx-1"]], ids=["all answer", "one is silent"])
@pytest.mark.parametrize(("words", "module", "well"), COMMANDS, ids=lambda one: str(one)[:20])
def test_no_command_takes_silence_for_all_being_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: Any, module: Any, well: Any,
    silent: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "ask_hosts", lambda *_, **__: ({"spark-1": well}, silent))
    done = CliRunner().invoke(main, [*words, "inventory/lab.py"])
    assert done.exit_code == int(bool(silent)), done.output
    if words[0] == "diff":
        assert "no difference: spark-1\n" in done.output
    if words[0] == "remove" and silent:
        assert "rtx-1: nothing was removed; run this again" in done.output

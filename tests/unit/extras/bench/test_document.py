"""``sparkwright bench --json``: one document, as docs/json.md says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.cli.test_json import judge
from tests.unit.extras.bench.test_command import ONE, _run, asked

__all__ = ["asked"]


def test_a_benchmark_is_one_document(asked: Any, tmp_path: Path) -> None:
    done = _run(*ONE, "--results", str(tmp_path / "results"), "--json")
    judge("bench", json.loads(done.stdout))

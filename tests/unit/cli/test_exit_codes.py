"""Exit codes: the same for the same mistake (the table in docs/commands.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkwright.cli import main

SPARK = 'sparks = [("spark-1", {"services": {"a": {"recipe": "gemma4-26b-a4b-dflash-agentic"}}})]\n'
#: Commands that plan the fleet here, without a host.
PLANNING = [
    "check", "plan", "lock --check", "render out", "bundle out", "endpoints",
    "monitoring --output out", "bench", "key list", "report inventory/lab.py",
]  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with one host that is planned well."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory").mkdir()
    (tmp_path / "group_data").mkdir()
    (tmp_path / "inventory/lab.py").write_text(SPARK)
    return tmp_path


def _code(*words: str) -> int:
    done = CliRunner().invoke(main, [part for word in words for part in word.split(" ")])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code


def test_what_is_right_has_0(site: Path) -> None:
    assert [_code(words) for words in ("check", "plan", "endpoints")] == [0, 0, 0]


@pytest.mark.parametrize("words", PLANNING)
def test_a_setting_that_can_not_be_used_has_2(words: str, site: Path) -> None:
    (site / "group_data/all.py").write_text("keep_releases = -1\n")
    assert _code(words) == 2
    assert not (site / "out").exists()


@pytest.mark.parametrize("words", PLANNING)
def test_an_inventory_that_is_not_there_has_2(words: str, site: Path) -> None:
    (site / "inventory/lab.py").unlink()
    assert _code(words) == 2


@pytest.mark.parametrize("words", [one for one in PLANNING if "key" not in one])
def test_a_limit_that_means_nothing_has_2(words: str, site: Path) -> None:
    assert _code(words, "--limit", "nobody") == 2


@pytest.mark.parametrize("words", ["check", "plan", "check --json", "plan --json"])
def test_a_known_mistake_in_the_plan_has_2(words: str, site: Path) -> None:
    recipe = '"recipe": "gemma4-26b-a4b-dflash-agentic"'
    wrong = f'{recipe}, "arguments": {{"max_num_seqs": 4000}}'
    (site / "inventory/lab.py").write_text(SPARK.replace(recipe, wrong))
    assert _code(words) == 2
    if "json" in words:
        found = json.loads(CliRunner().invoke(main, words.split()).output)
        findings = found[0]["findings"] if words.startswith("plan") else found
        assert "error" in {one["severity"] for one in findings}

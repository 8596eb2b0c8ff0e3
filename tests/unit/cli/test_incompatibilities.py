"""What the cards say does not work, through the command line: a site whose hosts each make one
mistake (tests/cards/incompatibilities.yaml), and what ``sparkwright check`` says of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkwright.catalog.load import load_catalog
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.cli import main
from tests.libyaml import safe_load
from tests.unit.builders import ROOT

_FILE = ROOT / "tests/cards/incompatibilities.yaml"
_KEYS = {"card", "section", "says", "from", "tag", "arguments", "environment", "settings", "data",
         "finds", "also", "names"}  # fmt: skip
ROWS: list[dict[str, Any]] = safe_load(_FILE.read_text(encoding="utf-8"))["rows"]
#: The five cards, by the names that sources of the catalog cite them by.
CARDS = {row["card"] for row in ROWS}


def _host(row: dict[str, Any]) -> dict[str, Any]:
    """A host's settings."""
    service = {"recipe": row["from"], **row.get("settings", {})}
    service |= {key: row[key] for key in ("arguments", "environment") if key in row}
    if "tag" in row:
        service["image_tag"] = row["tag"]
    return {"services": {"s": service}, **row.get("data", {})}


def _check(directory: Path, hosts: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Findings of ``sparkwright check`` by host."""
    inventory = directory / "inventory.py"
    inventory.write_text(f"hosts = {list(hosts.items())!r}\n")
    done = CliRunner().invoke(main, ["check", str(inventory), "--format", "json"])
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in hosts}
    for one in json.loads(done.output):
        found[one["subject"]["host"]].append(one)
    errors = [one for each in found.values() for one in each if one["severity"] == "error"]
    assert done.exit_code == (2 if errors else 0)
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What is said of every row, in one run."""
    hosts = {f"row-{number}": _host(row) for number, row in enumerate(ROWS)}
    return _check(tmp_path_factory.mktemp("rows"), hosts)


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_check_says_what_the_card_says(
    number: int, answers: dict[str, list[dict[str, Any]]]
) -> None:
    row, found = ROWS[number], answers[f"row-{number}"]
    assert set(row) <= _KEYS
    levels = {one["id"]: one["severity"] for one in found}
    assert levels == {**row["finds"], **row.get("also", {})}, row["says"]
    for one in found:
        assert one["observed"]
        assert one["remedy"]
        assert one["id"] == "input" or (one["reason"] and one["source"])
    said = [" ".join(map(str, one.values())) for one in found if one["id"] in row["finds"]]
    assert row.get("names", "") in "".join(said)
    # The rule names the row's card, unless the mistake is one of the settings themselves.
    if row["finds"] and "names" not in row and not {"input", *_ANYONES} & set(row["finds"]):
        assert any(row["card"] in text for text in said), said


#: Rules that hold for every card, by vLLM itself or by this project.
_ANYONES = {"tool-parser", "gpu-count", "remote-code", "context-limit", "kv-cache", "parser-family",
            "speculation-budget", "speculation-config", "image-architecture", "gb10-memory-share",
            "unified-memory", "thinking-budget", "secret-in-environment", "variable-not-read",
            "gb10-batched-tokens", "quantization-format"}  # fmt: skip


def test_every_recipe_as_it_is_passes(tmp_path: Path) -> None:
    """Nothing of the above is said to the cards' own settings; the two that the card lists for RTX
    50 have an image for arm64 alone."""
    recipes = sorted({row["from"] for row in ROWS})
    found = _check(tmp_path, {name: _host({"from": name}) for name in recipes})
    said = {name: {one["id"] for one in each} for name, each in found.items() if each}
    assert said == {"qwen36-35b-a3b-heretic-dflash-rtx5090": {"image-architecture"}}


def test_every_issue_of_the_catalog_has_a_row() -> None:
    """But for those that only real hardware shows: checks/configuration/test_rules.py."""
    tried = {name for row in ROWS for name in (*row["finds"], *row.get("also", {}))}
    catalog = load_catalog([ROOT / "catalog"])
    assert set(all_issues(catalog)) - tried == {"omni-gb10-only", "stock-nvfp4-kv"}


def test_all_five_cards_are_here() -> None:
    assert {
        "vllm-ultimate-dgx-spark",
        "Qwen3.6-35B-A3B-heretic-NVFP4",
        "Gemma-4-26B-A4B-it-Uncensored-NVFP4",
        "vllm-dflash",
        "vllm-spark-omni-q36",
    } == CARDS
    assert all(row["section"] and row["says"] for row in ROWS)

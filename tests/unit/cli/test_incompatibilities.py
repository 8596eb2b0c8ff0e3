"""Incompatibilities of the cards, through the command line: a site whose hosts each make one
mistake (tests/cards/incompatibilities.yaml), and the findings of ``sparkwright check`` on each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog.issues import folded
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.engines import engine
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog
from tests.unit.cli.answering import run

_FILE = safe_load((ROOT / "tests/cards/incompatibilities.yaml").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = _FILE["rows"]
Findings = dict[str, list[dict[str, Any]]]


def host_of(row: dict[str, Any]) -> dict[str, Any]:
    service = {"recipe": row["from"], **row.get("settings", {})}
    service |= {key: row[key] for key in ("arguments", "environment") if key in row}
    if "tag" in row:
        service["image_tag"] = row["tag"]
    return {"services": {"s": service}, **row.get("data", {})}


def checked(directory: Path, hosts: dict[str, dict[str, Any]]) -> Findings:
    """Findings of ``sparkwright check`` by host."""
    inventory = directory / "inventory.py"
    inventory.write_text(f"hosts = {list(hosts.items())!r}\n")
    done = run("check", str(inventory), "--json")
    findings: Findings = {name: [] for name in hosts}
    for item in json.loads(done.output):
        findings[item["subject"]["host"]].append(item)
    return findings


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """The findings on every row, of one command."""
    hosts = {f"row-{number}": host_of(row) for number, row in enumerate(ROWS)}
    return checked(tmp_path_factory.mktemp("rows"), hosts)


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_check_finds_what_the_card_says(number: int, answers: Findings) -> None:
    row, findings = ROWS[number], answers[f"row-{number}"]
    assert set(row) <= set(_FILE["keys"])
    levels = {item["id"]: item["severity"] for item in findings}
    assert levels == {**row["finds"], **row.get("also", {})}, row["says"]
    for item in findings:
        assert item["observed"]
        assert item["remedy"]
        assert item["id"] == "input" or (item["reason"] and item["source"])
    texts = [" ".join(map(str, item.values())) for item in findings if item["id"] in row["finds"]]
    assert row.get("names", "") in "".join(texts)
    # The rule names the row's card, unless the mistake is one of the settings themselves.
    if row["finds"] and "names" not in row and not {"input", *_FILE["anyones"]} & set(row["finds"]):
        assert any(row["card"] in text for text in texts), texts


def test_every_issue_of_the_catalog_has_a_row() -> None:
    """But for those that only other hardware shows: checks/configuration/test_rules.py."""
    tried = {name for row in ROWS for name in (*row["finds"], *row.get("also", {}))}
    assert set(all_issues(catalog())) - tried == {"omni-gb10-only"}


def _spellings(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row's settings, written in every other way that means them."""
    written: dict[str, Any] = row.get("arguments", {})
    dashed = {key.replace("_", "-"): value for key, value in written.items()}
    if dashed != written:
        yield {**row, "arguments": {**dict.fromkeys(written), **dashed}}
    for fact, others in engine("vllm").parser.spellings.items():
        name = fact.removeprefix("argument.")
        value = written.get(name)
        for other, values in others.items() if value not in (None, False) else ():
            kind, key, *part = other.split(".")
            texts = [
                text for text, meant in values.items() if folded(str(meant)) == folded(str(value))
            ]
            text = texts[0] if texts else str(value)
            if values and not texts:
                continue
            arguments = {**written, name: None}
            if kind == "environment":
                variables = {k.split(".")[1]: None for k in others if k.startswith("environment.")}
                yield {
                    **row,
                    "arguments": arguments,
                    "environment": {**row.get("environment", {}), **variables, key: text},
                }
            elif part:
                yield {**row, "arguments": {**arguments, key: {part[0]: text}}}
                yield {**row, "arguments": {**arguments, key: json.dumps({part[0]: text})}}
            else:
                yield {**row, "arguments": {**arguments, key: int(text)}}


def test_every_spelling_of_a_mistake_is_found(tmp_path: Path, answers: Findings) -> None:
    pairs = [(number, other) for number, row in enumerate(ROWS) for other in _spellings(row)]
    assert len(pairs) > 100
    hosts = {f"other-{index}": host_of(row) for index, (_, row) in enumerate(pairs)}
    faults = []
    for (number, row), findings in zip(pairs, checked(tmp_path, hosts).values(), strict=True):
        # A variable that the tag's vLLM has no more is refused for that, too.
        ids = {item["id"] for item in findings} - {"removed-variable"}
        expected = {item["id"] for item in answers[f"row-{number}"]} - {"removed-variable"}
        if ids != expected:
            faults.append((ids, expected, host_of(row)))
    assert not faults, "\n".join(map(str, faults))

"""`check` finds incompatibilities that the cards name, and every remedy of a rule works."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog.issues import folded
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.engines import engine
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog
from tests.unit.cli.answering import run

BREAKS = safe_load((ROOT / "tests/unit/checks/configuration/mistakes.yaml").read_text())
#: Rules about a name, whose remedy replaces the key itself.
NAMES = {"unknown-argument", "speculative-key", "misspelt-variable"}
_KEY = r"`?([A-Za-z_][\w.\-]*)`?"
#: Rules whose remedy needs work or a choice of the user.
PEOPLE = {"input", "remote-code", "secret-in-environment", "model-works", "image-architecture",
          "drafter-unused", "argument-choice", "kv-offload", "absent-file"}  # fmt: skip


def changes(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Alternatives of a remedy: dotted key -> value, None for a removed key."""
    remedy = item["remedy"]
    key = (item["subject"]["key"] or "").removeprefix("services.s.")
    for alternative in re.sub(r" \([^()]*\)", "", remedy).split("; or "):
        result: dict[str, Any] = {}
        for clause in re.split(r", (?=leave |[A-Za-z_.\-]+: )", alternative):
            if left := re.fullmatch(rf"leave (?:the argument|the setting|{_KEY}) out", clause):
                result[key if left[1] in (None, "it") else left[1]] = None
            elif guess := re.fullmatch(r"did you mean '(.*)'\?", clause):
                result[key] = None if item["id"] in NAMES else guess[1]
            elif (written := re.fullmatch(rf"{_KEY}: ([^,]+)", clause)) and "..." not in clause:
                result[written[1]] = safe_load(written[2])
            else:
                raise AssertionError(f"nobody can follow {clause!r} of {remedy!r}")
        yield result


def applied(host: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A host's settings with the changes of a remedy."""
    host = deepcopy(host)
    service = host["services"]["s"]
    for name, value in change.items():
        name = re.sub(r"^(arguments|environment)\.", "", name)
        first, _, rest = name.partition(".")
        if first in ("recipe", "image_tag", "bind", "proxy", "served_names", "smoke",
                     "media_domains"):  # fmt: skip
            (service.setdefault("smoke", {}) if rest else service)[rest or first] = value
            for key in ("image_tag",) if first == "recipe" else (first,) if value is None else ():
                service.pop(key, None)
        elif first.isupper():
            service.setdefault("environment", {})[name] = value
        else:
            variables = catalog().images[catalog().recipes[service["recipe"]].image].variables
            variable = variables and (
                variables.arguments.get(first)
                or (variables.num_speculative_tokens if rest == "num_speculative_tokens" else None)
            )
            if variable in service.get("environment", {}):
                service["environment"][variable] = str(value)
                continue
            arguments = service["arguments"] = {
                key.replace("-", "_"): item for key, item in service.get("arguments", {}).items()
            }
            recipe = catalog().recipes[service["recipe"]].arguments
            if rest:
                whole = arguments.get(first, recipe.get(first)) or {}
                whole = safe_load(whole) if isinstance(whole, str) else whole
                parts = {
                    key: item for key, item in {**whole, rest: value}.items() if item is not None
                }
                arguments[first] = parts or None
            elif name in recipe or value is not None:
                arguments[name] = value
            else:
                arguments.pop(name, None)
    return host


def test_following_a_remedy_causes_no_other_refusal(tmp_path: Path) -> None:
    rows = [host_of(row) for row in ROWS]
    rows += [{"services": {"s": {"recipe": b["recipe"], **b["settings"]}}} for b in BREAKS.values()]
    before = checked(tmp_path, {f"row-{number}": row for number, row in enumerate(rows)})
    followed: dict[str, dict[str, Any]] = {}
    remedies: list[tuple[str, list[dict[str, Any]]]] = []
    for row, findings in zip(rows, before.values(), strict=True):
        whole = row
        for item in findings:
            if item["id"] not in PEOPLE:
                each = list(changes(item))
                for change in each:
                    followed[f"one-{len(followed)}"] = applied(row, change)
                    remedies.append((item["id"], findings))
                whole = applied(whole, each[0])
        followed[f"all-{len(followed)}"] = whole
        remedies.append(("", findings))
    after = checked(tmp_path, followed)
    problems = []
    for (name, findings), (id_, earlier) in zip(after.items(), remedies, strict=True):
        ids, old = ({item["id"] for item in each} for each in (findings, earlier))
        if id_ in ids or ids - old or (not id_ and ids - PEOPLE):
            problems.append(f"{id_ or 'all'}: {sorted(old)} -> {sorted(ids)}: {followed[name]}")
    assert not problems, "\n".join(problems)


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
    """The findings on every row, from one command."""
    hosts = {f"row-{number}": host_of(row) for number, row in enumerate(ROWS)}
    return checked(tmp_path_factory.mktemp("rows"), hosts)


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_check_finds_each_incompatibility_of_the_cards(number: int, answers: Findings) -> None:
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
    # The rule names the row's card, unless the mistake is in the settings themselves.
    if row["finds"] and "names" not in row and not {"input", *_FILE["anyones"]} & set(row["finds"]):
        assert any(row["card"] in text for text in texts), texts


def test_every_issue_of_the_catalog_has_a_remedy_test() -> None:
    """checks/configuration/test_rules.py has the rules that need other hardware."""
    tried = {name for row in ROWS for name in (*row["finds"], *row.get("also", {}))}
    assert set(all_issues(catalog())) - tried == {"omni-gb10-only"}


def _spellings(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row's settings, in every other equivalent spelling."""
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
        # A variable is also refused if the tag's vLLM no longer has the variable.
        ids = {item["id"] for item in findings} - {"removed-variable"}
        expected = {item["id"] for item in answers[f"row-{number}"]} - {"removed-variable"}
        if ids != expected:
            faults.append((ids, expected, host_of(row)))
    assert not faults, "\n".join(map(str, faults))

"""Every figure of the catalog stands in the section of the card that its source names."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from docs.generate.cards import CARDS as PUBLISHED
from tests.cards.read import HERE, dates, figures, versions
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog
from tests.unit.catalog.test_card_tables import matched

CARDS: dict[str, Any] = safe_load((HERE / "figures.yaml").read_text(encoding="utf-8"))
DATA = [safe_load(path.read_text("utf-8")) for path in (ROOT / "catalog").rglob("*.yaml")]
#: Keys whose figures are this project's, or names.
_OURS = {
    "kind", "name", "repository", "family", "body", "drafter", "image", "tag", "recipe", "system",
    "served_names", "needs", "boot_seconds", "first_answer_seconds", "rank", "date", "not_before",
    "by_tag", "build", "variables", "id", "tags", "newest_tag", "rollback", "names", "writable",
    "vllm", "digest", "reference", "title", "gpus", "components", "entrypoint", "url",
    "pairs_with", "categories", "runs", "concurrency", "any_of", "none_of", "unlike", "look",
}  # fmt: skip
_GIB = 1.073741824


@dataclass
class Fact:
    """Figures of a source, by the key that each is under."""

    where: str
    source: str
    installed: list[tuple[str, float]] = field(default_factory=list)


def facts(where: str, node: Any) -> Iterator[Fact]:
    """Every mapping with a source, each with the figures that no source below it has."""
    fact = Fact(where, node.get("source", "") if isinstance(node, dict) else "")
    below: list[Fact] = []
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        if name in ("by_tag", "tags", "issues", "gpus") and isinstance(value, dict | list):
            for entry in value.values() if isinstance(value, dict) else value:
                if isinstance(entry, dict):
                    below.extend(facts(f"{where}.{name}", entry))
        elif name not in _OURS:
            _collect(str(name), value, f"{where}.{name}", fact, below)
    yield fact
    yield from below


def _collect(key: str, value: Any, path: str, fact: Fact, below: list[Fact]) -> None:
    """Add the figures of a value to a fact, and mappings with a source of their own below it."""
    if isinstance(value, dict) and "source" in value:
        below.extend(facts(path, value))
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _OURS or path.endswith(("arguments", "conditions")):
                _collect(str(name), inner, f"{path}.{name}", fact, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _collect(key, inner, f"{path}[{index}]", fact, below)
    elif key == "notes" and " (card of " in str(value):  # each with a source of its own
        text, _, source = str(value).rpartition(" (card of ")
        below.append(Fact(path, f"card of {source}", _figures(key, text)))
    else:
        fact.installed += _figures(key, value)


def _figures(key: str, value: Any) -> list[tuple[str, float]]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [(key, float(value))]
    if isinstance(value, str) and key not in ("source", "kv_cache_dtype"):
        return [(key, figure) for figure in figures(value)]
    return []


def cited(source: str) -> Iterator[tuple[str, str]]:
    """Card and section, of every section that a source names."""
    for part in source.split("; "):
        for card, expected in CARDS.items():
            if card not in part:
                continue
            arguments = part.replace("card of vllm-dflash", "").lower()
            for section in expected["sections"]:
                if section.lower() in arguments:
                    yield card, section


@cache
def figures_of(source: str) -> frozenset[float]:
    """The figures of the sections that a source names, and those that it quotes itself."""
    result = set(figures(source.replace("card of ", "")))
    for card, section in cited(source):
        text = CARDS[card]["sections"][section]["figures"]
        result |= {float(part) for part in text.split()}
    return frozenset(result)


def holds(key: str, value: float, own: frozenset[float]) -> bool:
    """Whether a figure is one of these, in a unit that the catalog has it in."""
    if (key, value) in (("temperature", 0), ("errors", 0)):
        return True  # "greedy" and "zero errors" are words
    if key.endswith("_gib"):
        return any(abs(value - item / _GIB) < 0.06 or value == item for item in own) or any(
            math.isclose(value, item / 1000 / _GIB, rel_tol=0.01) for item in own
        )
    scales = (1, 100, 0.001)
    if key in ("above", "instead") and value + 1 in own:
        return True  # "from 32 on" is above 31
    return any(math.isclose(value * scale, item, rel_tol=1e-9) for scale in scales for item in own)


def _unverified(source: str) -> bool:
    ours = ("sized by this project", "this project's reading", "this project's judgement")
    return "card of" not in source or any(our in source for our in ours)


@cache
def _all() -> list[Fact]:
    result: list[Fact] = []
    for data in map(dict, DATA):
        if data["kind"] == "causes":  # from which prompt length on it is looked at: this project's
            data["causes"] = [{**item, "prompt_tokens": None} for item in data["causes"]]
        if data["kind"] == "measurement":
            compared = {index for name, index in matched() if name == data["name"]}
            data["rows"] = [row for index, row in enumerate(data["rows"]) if index not in compared]
        result += [item for item in facts(data["name"], data) if not _unverified(item.source)]
    return result


def test_a_source_names_a_section_of_its_card() -> None:
    assert [(item.where, item.source) for item in _all() if not list(cited(item.source))] == []


def test_a_figure_is_in_the_section_that_its_source_names() -> None:
    missing = [
        f"{item.where}: {key}: {value:g} ({item.source})"
        for item in _all()
        for key, value in item.installed
        if not holds(key, value, figures_of(item.source))
    ]
    assert missing == []


def test_a_date_is_one_of_its_card() -> None:
    def each(node: Any) -> Iterator[tuple[str, str]]:
        if isinstance(node, dict):
            if "date" in node and node.get("source", "").startswith("card of"):
                yield str(node["date"]), f"{node['source']} {node.get('note', '')}"
            for value in node.values():
                yield from each(value)
        elif isinstance(node, list):
            for value in node:
                yield from each(value)

    for day, source in each(DATA):
        parts = {part for card in CARDS if card in source for part in CARDS[card]["dates"].split()}
        parts |= {date for card, _, day, _ in PUBLISHED if card in source for date in dates(day)}
        assert day in parts | set(dates(source)) or "estimate" in source, (day, source)


def test_a_version_is_in_the_section_that_its_source_names() -> None:
    missing = []
    for own in [tag for image in catalog().images.values() for tag in image.tags.values()]:
        expected = set(versions(own.source))
        for card, section in cited(own.source):
            expected |= set(CARDS[card]["sections"][section]["versions"].split())
        named = [*own.components.values(), *filter(None, [own.version])]
        missing += [(own.source, text) for text in named if set(versions(text)) - expected]
    assert missing == []

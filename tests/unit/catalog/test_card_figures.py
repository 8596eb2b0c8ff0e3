"""Figures and tables of the cards, cell by cell: tests/cards has a parser's results."""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from docs.generate.cards import CARDS as PUBLISHED
from sparkwright.catalog import Variables
from sparkwright.catalog.measurements import Row
from tests.cards.read import HERE, compared, dates, figures, versions
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog

CARDS: dict[str, Any] = safe_load((HERE / "figures.yaml").read_text(encoding="utf-8"))
DATA = [safe_load(path.read_text("utf-8")) for path in (ROOT / "catalog").rglob("*.yaml")]
#: Keys whose values are names, or figures of this project.
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
    """Figures of a source by their keys."""

    where: str
    source: str
    installed: list[tuple[str, float]] = field(default_factory=list)


def facts(where: str, node: Any) -> Iterator[Fact]:
    """Every mapping with a source, with all figures except those with a nested source."""
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
    """Add the figures of a value to a fact; collect nested mappings that have their own source."""
    if isinstance(value, dict) and "source" in value:
        below.extend(facts(path, value))
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _OURS or path.endswith(("arguments", "conditions")):
                _collect(str(name), inner, f"{path}.{name}", fact, below)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _collect(key, inner, f"{path}[{index}]", fact, below)
    elif key == "notes" and " (card of " in str(value):  # a note has its own source
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
    """Card and name of every section that a source cites."""
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
    """The figures of the sections that a source cites, and of the source's own quotation."""
    result = set(figures(source.replace("card of ", "")))
    for card, section in cited(source):
        text = CARDS[card]["sections"][section]["figures"]
        result |= {float(part) for part in text.split()}
    return frozenset(result)


def holds(key: str, value: float, own: frozenset[float]) -> bool:
    """Return whether a figure is in the list, in a unit of the catalog."""
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
        if data["kind"] == "causes":  # this project chose the prompt length
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


def test_a_date_is_on_its_card() -> None:
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


TABLES: dict[tuple[Any, ...], dict[str, Any]] = {
    tuple(table["at"]): table
    for table in safe_load((HERE / "tables.yaml").read_text(encoding="utf-8"))
}
COMPARED = [item for item in compared()["tables"] if "because" not in item]
_NUMBER = re.compile(r"(?<![\w.])(-?\d[\d,]*(?:\.\d+)?)([Kk](?!\w))?")
_CATEGORIES = {
    "code": "coding", "coding": "coding", "math": "math", "reasoning": "reasoning",
    "prose": "prose", "natural": "natural-language", "extraction": "extraction-json",
    "summary": "summary", "dialogue": "dialogue", "overall": "overall",
}  # fmt: skip
_USES = {"General": "general", "Coding": "coding", "Math/Reasoning": "math"}


def of(kind: str) -> list[Any]:
    """Tables with this kind of comparison, for parametrize."""
    items = [item for item in COMPARED if kind in item]
    return [pytest.param(item, id=f"{item['at'][0][8:24]}-{item['at'][1]}") for item in items]


def numbers(cell: str, key: str) -> list[float]:
    """The figures of a cell in the units of a row's key."""
    result = [
        float(match[1].replace(",", "")) * (1000 if match[2] else 1)
        for match in _NUMBER.finditer(re.sub("[¹²]", "", cell))
    ]
    if key.startswith("ttft") and re.search(r"\d s\b", cell):
        result = [item * 1000 for item in result]
    if "%" in cell and (key.startswith("acceptance") or key == "change"):
        result = [item / 100 for item in result]
    return result


def held(row: Row, key: str) -> list[float]:
    """The figures of a row under a key, from the row or from its values."""
    value = getattr(row, key) if key in Row.model_fields else row.values.get(key)
    ends = value if isinstance(value, tuple) else (value,)
    return [float(end) for end in ends if isinstance(end, int | float)]


def _same(row: Row, key: str | list[str], cell: str, *, rounded: bool) -> bool:
    if key == "category":
        return row.category == _CATEGORIES[re.findall(r"[a-z]+", cell.lower())[0]]
    keys = [key] if isinstance(key, str) else key
    own = [item for name in keys for item in held(row, name)]
    near = pytest.approx(numbers(cell, keys[0]), rel=1e-9, abs=0.0051 if rounded else 0)
    return bool(own) and own == near


def _rows(names: list[str]) -> list[tuple[str, int, Row]]:
    tables = catalog().measurements
    return [(name, at, row) for name in names for at, row in enumerate(tables[name].rows)]


def _matching(entry: dict[str, Any], columns: list[str], cells: list[str]) -> set[tuple[str, int]]:
    """Rows of the measurements that hold every figure of a row of the card."""
    given = {
        header: cell
        for header, cell in zip(columns, cells, strict=False)
        if header in entry["columns"] and cell
    }
    return {
        (name, at)
        for name, at, row in _rows(entry["measurements"])
        if all(
            _same(
                row, entry["columns"][header], cell,
                rounded=entry["columns"][header] in entry.get("rounded", ()),
            )
            for header, cell in given.items()
        )
    }  # fmt: skip


@cache
def matched() -> frozenset[tuple[str, int]]:
    """Every row of a measurement that is in a card's table."""
    return frozenset(_matched())


def _matched() -> Iterator[tuple[str, int]]:
    for entry in COMPARED:
        table = TABLES[tuple(entry["at"])]
        for cells in table["rows"]:
            if "columns" in entry:
                yield from _matching(entry, table["columns"], cells)
            elif "matrix" in entry:
                yield from (at for at, _ in _in_matrix(entry, table, cells))
            elif "transposed" in entry:
                yield (entry["measurements"][0], 0)
    for entry in compared()["squashed"]:
        yield from _of_squashed(entry)


@pytest.mark.parametrize("row", of("columns"))
def test_each_row_of_a_card_is_in_the_catalog(row: dict[str, Any]) -> None:
    table = TABLES[tuple(row["at"])]
    assert set(row["columns"]) <= set(table["columns"])
    for cells in table["rows"]:
        if len(cells) < 3:
            continue  # the row was cut off before its first figure
        assert len(_matching(row, table["columns"], cells)) == 1, cells


def _in_matrix(
    entry: dict[str, Any], table: dict[str, Any], cells: list[str]
) -> Iterator[tuple[tuple[str, int], bool]]:
    """Rows for concurrency and category, and whether each holds the cell's figure."""
    for header, cell in zip(table["columns"][1:], cells[1:], strict=True):
        for name, at, row in _rows(entry["measurements"]):
            if row.concurrency == int(cells[0]) and _same(row, "category", header, rounded=False):
                yield (name, at), held(row, entry["matrix"]) == numbers(cell, entry["matrix"])


@pytest.mark.parametrize("row", of("matrix"))
def test_each_cell_of_a_matrix_is_a_row(row: dict[str, Any]) -> None:
    table = TABLES[tuple(row["at"])]
    for cells in table["rows"]:
        result = list(_in_matrix(row, table, cells))
        assert len(result) == len(cells) - 1
        assert all(holds for _, holds in result), cells


@pytest.mark.parametrize("entry", of("transposed"))
def test_each_statistic_of_a_card_is_a_key_of_the_row(entry: dict[str, Any]) -> None:
    row = catalog().measurements[entry["measurements"][0]].rows[0]
    rows = {cells[0]: cells[1] for cells in TABLES[tuple(entry["at"])]["rows"]}
    assert rows.keys() == entry["transposed"].keys()
    for name, key in entry["transposed"].items():
        assert held(row, key) == numbers(rows[name], key)


@pytest.mark.parametrize("entry", of("gates"))
def test_each_figure_of_a_gate_is_in_its_measurement(entry: dict[str, Any]) -> None:
    for column, names in entry["gates"].items():
        own = {
            figure
            for _, _, row in _rows(names)
            for key in (*Row.model_fields, *row.values)
            for figure in (*held(row, key), *(100 * item for item in held(row, key)))
        }
        own |= {number for _, _, row in _rows(names) for number in numbers(row.label or "", "")}
        for cells in TABLES[tuple(entry["at"])]["rows"]:
            for figure in numbers(cells[column], ""):
                assert any(figure == pytest.approx(expected) for expected in own), cells


def _of_squashed(entry: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, at, row in _rows(entry["measurements"]):
        if "transposed" in entry:
            if all(f"{key}{held(row, value)[0]:.1f}" in entry["rows"]
                   for key, value in entry["transposed"].items()):  # fmt: skip
                yield name, at
            continue
        cells = [list(_as_written(row, key)) for key in entry["cells"]]
        if {"".join(arguments) for arguments in itertools.product(*cells)} & set(entry["rows"]):
            yield name, at


def _as_written(row: Row, key: str) -> Iterator[str]:
    for value in held(row, key):
        if key in ("concurrency", "errors"):
            yield f"{value:g}"
        elif key.startswith("ttft"):
            yield from (f"{value:g} ms", f"{value / 1000:g} s")
        else:
            yield f"{value:.1f}"


@pytest.mark.parametrize("row", compared()["squashed"], ids=lambda item: item["measurements"][0])
def test_each_row_without_columns_equals_the_cells_of_a_row(row: dict[str, Any]) -> None:
    expected = 1 if "transposed" in row else len(row["rows"])
    assert len(list(_of_squashed(row))) == expected


@pytest.mark.parametrize("row", of("components"))
def test_each_component_of_a_tag_equals_the_component_on_the_card(row: dict[str, Any]) -> None:
    image, tag = row["components"]
    own = catalog().images[image].tags[tag]
    given = {
        name.lower(): version
        for name, version in TABLES[tuple(row["at"])]["rows"]
        if re.match(r"\d+\.\d", version)
    }
    vllm = given.pop("vllm")
    assert own.version is not None
    assert vllm.startswith(own.version)
    assert {name.lower(): version for name, version in own.components.items()} == given


def _named(variables: Variables) -> set[str]:
    return {value for value in variables.model_dump().values() if isinstance(value, str)}


@pytest.mark.parametrize("row", of("variables"))
def test_each_variable_has_the_cards_default(row: dict[str, Any]) -> None:
    image, recipe = catalog().images[row["variables"][0]], catalog().recipes[row["variables"][1]]
    assert image.variables is not None
    settings = {setting.name: setting for setting in image.settings}
    argument = {variable: name for name, variable in image.variables.arguments.items()}
    for name, default in TABLES[tuple(row["at"])]["rows"]:
        if name in argument:
            assert str(recipe.arguments[argument[name]]) == default
        elif name == image.variables.num_speculative_tokens:
            config = recipe.arguments["speculative_config"]
            assert isinstance(config, dict)
            assert str(config["num_speculative_tokens"]) == default
        elif re.fullmatch(r"\w+", default) and default not in ("required", "unset"):
            assert settings[name].default == default
        else:
            assert name in settings.keys() | _named(image.variables)


@pytest.mark.parametrize("entry", of("sampling"))
def test_each_row_of_advised_sampling_equals_the_models_row(entry: dict[str, Any]) -> None:
    table = TABLES[tuple(entry["at"])]
    given = {
        ("thinking" if cells[0] == "Thinking" else "instruct", _USES[header],
         *(float(part) for part in re.findall(r"[\d.]+", cell)))
        for cells in table["rows"]
        for header, cell in zip(table["columns"][1:], cells[1:], strict=True)
        if "=" in cell
    }  # fmt: skip
    own = {
        (row.mode, row.use, row.temperature, row.top_p, row.top_k, row.presence_penalty)
        for row in catalog().models[entry["sampling"]].sampling
        if row.mode != "any"
    }
    assert own == given


@pytest.mark.parametrize("row", of("kv"))
def test_layers_with_a_kv_cache_equal_the_layers_on_the_card(row: dict[str, Any]) -> None:
    name, line = row["kv"]
    (cells,) = [cells for cells in TABLES[tuple(row["at"])]["rows"] if cells[0] == line]
    (layer,) = catalog().models[name].kv
    assert numbers(cells[1], "")[0] == layer.layers
    assert numbers(cells[2], "")[1] == layer.heads
    assert numbers(cells[3], "")[0] == layer.head_dim

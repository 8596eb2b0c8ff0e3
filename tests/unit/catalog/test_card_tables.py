"""Every table of the cards, cell by cell: tests/cards/tables.yaml is what a parser read of them."""

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from sparkwright.catalog import Variables
from sparkwright.catalog.measurements import Row
from tests.cards.read import HERE, compared
from tests.libyaml import safe_load
from tests.unit.builders import catalog

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
    """Tables that are compared in this way, for parametrize."""
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
    """The figures of a row under a key, of its own or in its values."""
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


def _matching(one: dict[str, Any], columns: list[str], cells: list[str]) -> set[tuple[str, int]]:
    """Rows of the measurements that hold every figure of a row of the card."""
    given = {
        header: cell
        for header, cell in zip(columns, cells, strict=False)
        if header in one["columns"] and cell
    }
    return {
        (name, at)
        for name, at, row in _rows(one["measurements"])
        if all(
            _same(
                row, one["columns"][header], cell,
                rounded=one["columns"][header] in one.get("rounded", ()),
            )
            for header, cell in given.items()
        )
    }  # fmt: skip


@cache
def matched() -> frozenset[tuple[str, int]]:
    """Every row of a measurement that a card's table has."""
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


@pytest.mark.parametrize("one", of("columns"))
def test_each_row_of_a_card_is_one_of_the_catalogs(one: dict[str, Any]) -> None:
    table = TABLES[tuple(one["at"])]
    assert set(one["columns"]) <= set(table["columns"])
    for cells in table["rows"]:
        if len(cells) < 3:
            continue  # the text was cut off here, before the first figure
        assert len(_matching(one, table["columns"], cells)) == 1, cells


def _in_matrix(
    one: dict[str, Any], table: dict[str, Any], cells: list[str]
) -> Iterator[tuple[tuple[str, int], bool]]:
    """Rows for concurrency and category, and whether each holds the cell's figure."""
    for header, cell in zip(table["columns"][1:], cells[1:], strict=True):
        for name, at, row in _rows(one["measurements"]):
            if row.concurrency == int(cells[0]) and _same(row, "category", header, rounded=False):
                yield (name, at), held(row, one["matrix"]) == numbers(cell, one["matrix"])


@pytest.mark.parametrize("one", of("matrix"))
def test_each_cell_of_a_matrix_is_a_row(one: dict[str, Any]) -> None:
    table = TABLES[tuple(one["at"])]
    for cells in table["rows"]:
        result = list(_in_matrix(one, table, cells))
        assert len(result) == len(cells) - 1
        assert all(holds for _, holds in result), cells


@pytest.mark.parametrize("one", of("transposed"))
def test_each_statistic_is_a_key(one: dict[str, Any]) -> None:
    row = catalog().measurements[one["measurements"][0]].rows[0]
    rows = {cells[0]: cells[1] for cells in TABLES[tuple(one["at"])]["rows"]}
    assert rows.keys() == one["transposed"].keys()
    for name, key in one["transposed"].items():
        assert held(row, key) == numbers(rows[name], key)


@pytest.mark.parametrize("one", of("gates"))
def test_each_gate_is_in_its_measurement(one: dict[str, Any]) -> None:
    for column, names in one["gates"].items():
        own = {
            figure
            for _, _, row in _rows(names)
            for key in (*Row.model_fields, *row.values)
            for figure in (*held(row, key), *(100 * item for item in held(row, key)))
        }
        own |= {number for _, _, row in _rows(names) for number in numbers(row.label or "", "")}
        for cells in TABLES[tuple(one["at"])]["rows"]:
            for figure in numbers(cells[column], ""):
                assert any(figure == pytest.approx(expected) for expected in own), cells


def _of_squashed(one: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, at, row in _rows(one["measurements"]):
        if "transposed" in one:
            if all(f"{key}{held(row, value)[0]:.1f}" in one["rows"]
                   for key, value in one["transposed"].items()):  # fmt: skip
                yield name, at
            continue
        cells = [list(_as_written(row, key)) for key in one["cells"]]
        if {"".join(arguments) for arguments in itertools.product(*cells)} & set(one["rows"]):
            yield name, at


def _as_written(row: Row, key: str) -> Iterator[str]:
    for value in held(row, key):
        if key in ("concurrency", "errors"):
            yield f"{value:g}"
        elif key.startswith("ttft"):
            yield from (f"{value:g} ms", f"{value / 1000:g} s")
        else:
            yield f"{value:.1f}"


@pytest.mark.parametrize("one", compared()["squashed"], ids=lambda item: item["measurements"][0])
def test_each_row_without_columns_is_the_cells_of_one(one: dict[str, Any]) -> None:
    expected = 1 if "transposed" in one else len(one["rows"])
    assert len(list(_of_squashed(one))) == expected


@pytest.mark.parametrize("one", of("components"))
def test_each_component_of_a_tag_is_the_cards(one: dict[str, Any]) -> None:
    image, tag = one["components"]
    own = catalog().images[image].tags[tag]
    given = {
        name.lower(): version
        for name, version in TABLES[tuple(one["at"])]["rows"]
        if re.match(r"\d+\.\d", version)
    }
    vllm = given.pop("vllm")
    assert own.vllm is not None
    assert vllm.startswith(own.vllm)
    assert {name.lower(): version for name, version in own.components.items()} == given


def _named(variables: Variables) -> set[str]:
    return {value for value in variables.model_dump().values() if isinstance(value, str)}


@pytest.mark.parametrize("one", of("variables"))
def test_each_variable_has_the_cards_default(one: dict[str, Any]) -> None:
    image, recipe = catalog().images[one["variables"][0]], catalog().recipes[one["variables"][1]]
    assert image.variables is not None
    settings = {setting.name: setting for setting in image.settings}
    argument = {variable: name for name, variable in image.variables.arguments.items()}
    for name, default in TABLES[tuple(one["at"])]["rows"]:
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


@pytest.mark.parametrize("one", of("sampling"))
def test_each_row_of_advised_sampling_is_the_models(one: dict[str, Any]) -> None:
    table = TABLES[tuple(one["at"])]
    given = {
        ("thinking" if cells[0] == "Thinking" else "instruct", _USES[header],
         *(float(part) for part in re.findall(r"[\d.]+", cell)))
        for cells in table["rows"]
        for header, cell in zip(table["columns"][1:], cells[1:], strict=True)
        if "=" in cell
    }  # fmt: skip
    own = {
        (row.mode, row.use, row.temperature, row.top_p, row.top_k, row.presence_penalty)
        for row in catalog().models[one["sampling"]].sampling
        if row.mode != "any"
    }
    assert own == given


@pytest.mark.parametrize("one", of("kv"))
def test_layers_that_keep_keys_are_the_cards(one: dict[str, Any]) -> None:
    name, line = one["kv"]
    (cells,) = [cells for cells in TABLES[tuple(one["at"])]["rows"] if cells[0] == line]
    (layer,) = catalog().models[name].kv
    assert numbers(cells[1], "")[0] == layer.layers
    assert numbers(cells[2], "")[1] == layer.heads
    assert numbers(cells[3], "")[0] == layer.head_dim

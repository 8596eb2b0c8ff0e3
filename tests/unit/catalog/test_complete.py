"""Statements of the cards beside commands and figures are in the catalog, for `catalog show`."""

import json
from typing import Any

import pytest

from sparkwright.catalog import Image, Model, Recipe
from sparkwright.catalog.data import OWN
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog

cases = Tables(__file__)

RECIPES: dict[str, Recipe] = catalog().recipes
ENTRIES: dict[str, Image | Model] = {**catalog().images, **catalog().models}
PAGE = (ROOT / "docs/catalog.md").read_text(encoding="utf-8")
#: What `catalog show` prints of every entry, and the list of what the catalog lacks.
SHOWN = "\n".join(
    json.dumps(entry.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    for _, _, entry in catalog().every()
) + (ROOT / "docs/not-ours.yaml").read_text(encoding="utf-8")
AEON = catalog().images["aeon-vllm-ultimate"]
#: Abliterated or uncensored, and the cards say of them what an operator must do.
UNCENSORED = {*cases.data["uncensored"]}


def test_every_image_and_model_has_a_licence_or_says_that_none_is_named() -> None:
    for name, entry in ENTRIES.items():
        assert entry.license is not None, name
        assert entry.license.name or entry.license.note, name
        assert entry.license.source, name


def test_uncensored_models_name_the_operators_duties() -> None:
    assert {name for name, model in catalog().models.items() if model.duties} == UNCENSORED
    assert AEON.duties is not None


@pytest.mark.parametrize("message", ["flashinfer_b12x", "Dynamic SD", "async scheduling"])
def test_the_tag_of_the_cards_says_what_it_adds(message: str) -> None:
    assert any(message in added for added in AEON.tags["2026-07-01-v0.24.0"].adds)


def test_catalog_show_has_it() -> None:
    texts = cases.data["test_catalog_show_has_it"]
    assert [text for text in texts if " ".join(text.split()) not in " ".join(SHOWN.split())] == []


def test_the_page_has_every_recipe_and_tag() -> None:
    names = [*RECIPES, *(tag for image in catalog().images.values() for tag in image.tags)]
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


def test_every_entry_of_ours_says_who_says_so_and_when() -> None:
    """Optional in a user's own catalog, never in the shipped one."""
    parts: list[Any] = [item.model_dump() for item in (*ENTRIES.values(), *RECIPES.values())]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            assert OWN not in part.values(), part
            assert part.get("date", "none") is not None, part
            part = list(part.values())
        parts += [item for item in part if isinstance(item, dict | list | tuple)]

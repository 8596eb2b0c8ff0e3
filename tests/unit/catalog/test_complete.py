"""Entries of the shipped catalog and of a user's own catalog: required and optional keys."""

import json
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from sparkwright.catalog import Image, Model, Recipe
from sparkwright.catalog.data import OWN
from sparkwright.catalog.entries import Format
from sparkwright.engines.vllm.model_checks import QUANTIZATION
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog

cases = Tables(__file__)

RECIPES: dict[str, Recipe] = catalog().recipes
ENTRIES: dict[str, Image | Model] = {**catalog().images, **catalog().models}
PAGE = (ROOT / "docs/catalog.md").read_text(encoding="utf-8")
#: Output of `catalog show` for every entry, and the list of missing entries.
SHOWN = "\n".join(
    json.dumps(entry.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    for _, _, entry in catalog().every()
) + (ROOT / "docs/not-ours.yaml").read_text(encoding="utf-8")
AEON = catalog().images["aeon-vllm-ultimate"]
#: Models without refusals, with the cards' demands on an operator.
UNCENSORED = {*cases.data["uncensored"]}


def test_every_image_and_model_has_a_licence_or_a_note() -> None:
    for name, entry in ENTRIES.items():
        assert entry.license is not None, name
        assert entry.license.name or entry.license.note, name
        assert entry.license.source, name


def test_uncensored_models_name_the_operators_duties() -> None:
    assert {name for name, model in catalog().models.items() if model.duties} == UNCENSORED
    assert AEON.duties is not None


@pytest.mark.parametrize("message", ["flashinfer_b12x", "Dynamic SD", "async scheduling"])
def test_the_cards_tag_lists_its_additions(message: str) -> None:
    assert any(message in added for added in AEON.tags["2026-07-01-v0.24.0"].adds)


def test_catalog_show_prints_every_entry() -> None:
    texts = cases.data["test_catalog_show_prints_every_entry"]
    assert [text for text in texts if " ".join(text.split()) not in " ".join(SHOWN.split())] == []


def test_the_page_has_every_recipe_and_tag() -> None:
    names = [*RECIPES, *(tag for image in catalog().images.values() for tag in image.tags)]
    assert [name for name in names if f"| `{name}` |" not in PAGE] == []


def test_every_shipped_entry_has_its_source_and_date() -> None:
    """Source and date are optional in a user's own catalog, but not in the shipped catalog."""
    parts: list[Any] = [item.model_dump() for item in (*ENTRIES.values(), *RECIPES.values())]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            assert OWN not in part.values(), part
            assert part.get("date", "none") is not None, part
            part = list(part.values())
        parts += [item for item in part if isinstance(item, dict | list | tuple)]


MODEL: dict[str, Any] = {
    "kind": "model", "name": "mine", "repository": "me/mine", "family": "mine", "role": "body",
    "format": "fp8",
}  # fmt: skip


def test_a_users_entry_may_omit_source_and_date() -> None:
    model = Model.model_validate(MODEL)
    recipe = Recipe.model_validate(
        {"kind": "recipe", "name": "mine", "title": "Mine", "image": "vllm-openai",
         "body": {"model": "mine", "mount": "/models/mine"}, "served_names": ["mine"],
         "needs": {"compute_caps": ["12.0"], "memory_gib": 32}, "arguments": {}}
    )  # fmt: skip
    assert (model.source, model.date) == (OWN, None)
    assert (recipe.source, recipe.system, recipe.date) == (OWN, OWN, None)


@pytest.mark.parametrize("form", get_args(Format))
def test_every_format_has_its_quantization_argument(form: str) -> None:
    file = {"file": "mine-Q4_K_M.gguf"} if form == "gguf" else {}
    assert Model.model_validate({**MODEL, "format": form, **file}).format == form
    assert form in QUANTIZATION


@cases("keys")
def test_a_gguf_model_names_its_files_and_no_other_model_does(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Model.model_validate({**MODEL, **keys})


@cases("name")
def test_a_repository_is_neither_an_option_nor_a_path(name: str) -> None:
    with pytest.raises(ValidationError, match="repository"):
        Model.model_validate({**MODEL, "repository": name})


@cases("revision")
def test_a_revision_is_neither_an_option_nor_a_path(revision: str) -> None:
    with pytest.raises(ValidationError, match="revision"):
        Model.model_validate({**MODEL, "revision": revision})

"""Entries of a user's own catalog: what they may leave out, and what they may not say."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from sparkwright.catalog import Model, Recipe
from sparkwright.catalog.data import OWN
from sparkwright.catalog.entries import Format
from sparkwright.engines.vllm.model_checks import QUANTIZATION
from tests.tables import Tables

cases = Tables(__file__)

MODEL: dict[str, Any] = {
    "kind": "model", "name": "mine", "repository": "me/mine", "family": "mine", "role": "body",
    "format": "fp8",
}  # fmt: skip


def test_who_says_so_and_when_may_be_left_out() -> None:
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
def test_a_revision_is_neither(revision: str) -> None:
    with pytest.raises(ValidationError, match="revision"):
        Model.model_validate({**MODEL, "revision": revision})

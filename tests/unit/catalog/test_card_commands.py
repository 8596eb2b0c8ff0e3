"""Rendered services against the cards' own commands, key by key: differences are declared.

docs/deviations.yaml declares differences on the card's own tag; a recipe's ``by_tag`` declares
differences on another tag. Each declaration gives a reason.
"""

from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest

from docs.generate.deviations import concerned
from sparkwright.engines.vllm.engine import CACHES
from tests.cards.differences import ABSENT, COMMANDS, Difference, differences, of_card, of_service
from tests.libyaml import safe_load
from tests.unit.builders import ROOT, catalog

DECLARED: list[dict[str, Any]] = safe_load(
    (ROOT / "docs/deviations.yaml").read_text(encoding="utf-8")
)
ENTRIES = {entry["recipe"]: entry for entry in COMMANDS}
#: Recipes sized by this project: their cards name the GPU and give no settings.
SIZED_HERE = {
    "qwen35-4b-rtx-16gb",
    "qwen35-4b-rtx-24gb",
    "qwen36-35b-a3b-heretic-dflash-rtx-pro-6000",
    "qwen36-35b-a3b-heretic-dflash-rtx5090",
}


@cache
def _differences(recipe: str, tag: str) -> frozenset[Difference]:
    """Differences from the card, without the service's own paths and hashes."""
    return frozenset(differences(of_card(ENTRIES[recipe]), of_service(recipe, tag)))


def _declares(row: dict[str, Any], recipe: str, findings: Difference) -> bool:
    return (
        recipe in concerned(row, list(ENTRIES))
        and any(fnmatchcase(findings.key, key) for key in row["keys"])
        and any(fnmatchcase(findings.card, value) for value in row.get("from", ["*"]))
        and any(fnmatchcase(findings.here, value) for value in row.get("to", ["*"]))
    )


@pytest.mark.parametrize("recipe", ENTRIES)
def test_every_difference_is_declared_once(recipe: str) -> None:
    for difference in _differences(recipe, ENTRIES[recipe]["tag"]):
        declared = [item["card"] for item in DECLARED if _declares(item, recipe, difference)]
        assert len(declared) == 1, (difference, declared)


@pytest.mark.parametrize("row", DECLARED, ids=[item["card"][:40] for item in DECLARED])
def test_every_declared_deviation_exists(row: dict[str, Any]) -> None:
    assert row["why"]
    for recipe in concerned(row, list(ENTRIES)):
        result = [
            difference
            for difference in _differences(recipe, ENTRIES[recipe]["tag"])
            if _declares(row, recipe, difference)
        ]
        assert result, f"{recipe} does not differ in {row['keys']}"
    for pattern in row["keys"]:
        assert any(
            fnmatchcase(difference.key, pattern)
            for recipe in concerned(row, list(ENTRIES))
            for difference in _differences(recipe, ENTRIES[recipe]["tag"])
        ), pattern


def _on_tags() -> list[tuple[str, str]]:
    return [
        (name, tag)
        for name, recipe in sorted(catalog().recipes.items())
        for tag in recipe.tags or catalog().images[recipe.image].tags
        if name in ENTRIES and tag != ENTRIES[name]["tag"] and not (recipe.tag and not recipe.tags)
    ]


@pytest.mark.parametrize(("recipe", "tag"), _on_tags())
def test_another_tag_changes_only_its_declared_arguments(recipe: str, tag: str) -> None:
    """The default tag is tested too: the Gemma card's command belongs to the previous tag."""
    change = catalog().recipes[recipe].by_tag
    own = ENTRIES[recipe]["tag"]
    here, there = of_service(recipe, own), of_service(recipe, tag)
    changed = {difference.key for difference in differences(here, there)} - {"labels"}
    texts = set()
    for name in (own, tag):
        if name in change:
            texts |= {f"--{key.replace('_', '-')}" for key in change[name].arguments}
            texts |= {f"environment.{key}" for key in change[name].environment}
    if "--enable-prefix-caching" in texts and "--no-enable-prefix-caching" in changed:
        texts.add("--no-enable-prefix-caching")
    assert changed == texts
    assert all(item.why and item.source for item in change.values())


def test_every_recipe_is_compared_or_sized_by_this_project() -> None:
    recipes = catalog().recipes
    spread = {name for name, item in recipes.items() if item.ranks}
    unproven = {name for name, item in recipes.items() if item.status == "unproven"}
    assert set(recipes) - set(ENTRIES) == SIZED_HERE | unproven
    # Recipes of other publishers, which nobody has run with sparkwright.
    assert spread <= unproven
    publishers = ("MiaAI-Lab/", "sgl-project/sglang", "spark-arena/", "vllm-project/recipes@")
    gguf = {name for name in unproven if catalog().models[recipes[name].body.model].file}
    assert all(recipes[name].source.startswith(publishers) for name in unproven - gguf)
    assert {recipe.ranks.world for recipe in recipes.values() if recipe.ranks} == {2, 3, 4}
    for name in SIZED_HERE:
        assert "sized by this project" in catalog().recipes[name].source


def test_kept_files_of_a_containers_start_are_declared_completely() -> None:
    (caches,) = [item for item in DECLARED if "environment.VLLM_CACHE_ROOT" in item["keys"]]
    assert {f"environment.{name}" for name in CACHES} < set(caches["keys"])


def test_an_undeclared_difference_is_found() -> None:
    card = of_card(ENTRIES["qwen36-27b-dflash-fp8"])
    here = of_service("qwen36-27b-dflash-fp8", ENTRIES["qwen36-27b-dflash-fp8"]["tag"])
    (result,) = [
        difference
        for difference in differences(card, {**here, "--max-num-seqs": "17"})
        if difference.key == "--max-num-seqs"
    ]
    assert result == Difference("--max-num-seqs", "16", "17")
    assert not any(_declares(item, "qwen36-27b-dflash-fp8", result) for item in DECLARED)
    assert ABSENT not in card.values()

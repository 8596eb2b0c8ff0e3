"""The recipe that the catalog, or the user's, has for a repository: asked before any file of it."""

from __future__ import annotations

from functools import partial

from sparkwright.catalog import Catalog, Recipe
from sparkwright.catalog.gpus import FAMILIES, architectures
from sparkwright.engines.derivation import Gpu

#: Best first; one that fails, or that another one took the place of, is for those who name it.
_RANKS = ("recommended", "works", "expected")


def recipe_for(catalog: Catalog, repository: str, gpu: Gpu | None) -> Recipe | None:
    """The best recipe whose body is this repository and that runs on this GPU; None for none.

    On a card that is named, the one made for the most memory that it has goes first; then what the
    catalog says of it, the least memory, a drafter that makes it faster, and the name.
    """
    found = [
        recipe
        for recipe in catalog.recipes.values()
        if catalog.models[recipe.body.model].repository == repository
        and _fits(recipe, gpu, catalog)
    ]
    named = gpu is not None and gpu.vram_gib is not None
    return min(found, key=partial(_order, named=named), default=None)


def _fits(recipe: Recipe, gpu: Gpu | None, catalog: Catalog) -> bool:
    if recipe.status in ("superseded", "fails") or (recipe.ranks and recipe.ranks.world > 1):
        return False
    if gpu is None:
        return True
    if gpu.cap not in recipe.needs.compute_caps:
        return False
    if FAMILIES[gpu.cap].architecture not in architectures(recipe, catalog):
        return False
    return gpu.vram_gib is None or (recipe.needs.vram_gib or 0) <= gpu.vram_gib


def _order(recipe: Recipe, *, named: bool) -> tuple[float, int, float, bool, str]:
    rank = _RANKS.index(recipe.status) if recipe.status in _RANKS else len(_RANKS)
    vram = recipe.needs.vram_gib or 0
    return -vram if named else 0, rank, vram, recipe.drafter is None, recipe.name

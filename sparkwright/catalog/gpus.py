"""GPUs by the names that people call them, and which recipes run on them."""

from __future__ import annotations

from collections.abc import Collection

from sparkwright.catalog.entries import Recipe
from sparkwright.catalog.load import Catalog

#: What people call a GPU -> its compute capability.
GPUS = {
    "gb10": "12.1",
    "spark": "12.1",
    "rtx5090": "12.0",
    "rtx5080": "12.0",
    "rtx-pro-6000": "12.0",
}
#: The compute capability whose GPU has no memory of its own.
UNIFIED = "12.1"
#: The least MemTotal that was seen on a DGX Spark: 125513944 kB.
LEAST_SPARK_GIB = 119.7
#: GiB that the system of a Spark needs for itself: an estimate of this project.
SYSTEM_GIB = 8.0
#: Least memory of the card itself, in GiB, of those that are smaller than a recipe may need.
VRAM = {"rtx5090": 31.8, "rtx5080": 15.9, "rtx-pro-6000": 95.6}
#: Compute capability -> the architecture of the machines with such a GPU, in the registry's words.
MACHINES = {"12.1": "arm64", "12.0": "amd64"}


def architectures(recipe: Recipe, catalog: Catalog) -> tuple[str, ...]:
    """What the recipe's image is for, as the catalog has it."""
    image = catalog.images[recipe.image]
    return image.tags[recipe.tag or image.newest_tag].architectures


def spark_only(recipe: Recipe, catalog: Catalog) -> bool:
    """Whether no other machine than a Spark has an architecture of the recipe's image."""
    return set(architectures(recipe, catalog)) == {MACHINES["12.1"]}


def recipes_for(
    catalog: Catalog, architecture: str, caps: Collection[str | None], vram_gib: float | None = None
) -> list[str]:
    """Names of recipes for one of these GPUs whose image has the architecture.

    Args:
        architecture: in the registry's words.
        caps: compute capabilities.
        vram_gib: what a card of its own has; None leaves that out.
    """
    return sorted(
        recipe.name
        for recipe in catalog.recipes.values()
        if set(caps) & set(recipe.needs.compute_caps)
        and architecture in architectures(recipe, catalog)
        and (vram_gib is None or (recipe.needs.vram_gib or 0) <= vram_gib)
    )


def largest_for(gpu: str, catalog: Catalog) -> Recipe | None:
    """The recipe made for the most memory that a card of this name has; None where none fits.

    Only for cards with memory of their own: a Spark's pool is shared, and no recipe says how much
    of it is the GPU's.
    """
    cap = GPUS[gpu]
    named = recipes_for(catalog, MACHINES[cap], {cap}, VRAM.get(gpu, 0))
    fitting = [
        (needs, name)
        for name in named
        if (needs := catalog.recipes[name].needs.vram_gib) is not None
    ]
    return catalog.recipes[max(fitting)[1]] if fitting else None

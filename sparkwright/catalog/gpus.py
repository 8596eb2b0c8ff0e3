"""GPUs by the names that people call them."""

from __future__ import annotations

from collections.abc import Iterable

from sparkwright.catalog.entries import Recipe

#: What people call a GPU -> its compute capability.
GPUS = {
    "gb10": "12.1",
    "spark": "12.1",
    "rtx5090": "12.0",
    "rtx5080": "12.0",
    "rtx-pro-6000": "12.0",
}
#: Least memory of the card itself, in GiB, of those that are smaller than a recipe may need.
VRAM = {"rtx5090": 31.8, "rtx5080": 15.9, "rtx-pro-6000": 95.6}


def largest_for(gpu: str, recipes: Iterable[Recipe]) -> Recipe | None:
    """The recipe made for the most memory that a card of this name has; None where none fits.

    Only for cards with memory of their own: a Spark's pool is shared, and no recipe says how much
    of it is the GPU's.
    """
    fitting = [
        (recipe.needs.vram_gib, recipe.name, recipe)
        for recipe in recipes
        if GPUS[gpu] in recipe.needs.compute_caps
        and recipe.needs.vram_gib is not None
        and recipe.needs.vram_gib <= VRAM.get(gpu, 0)
    ]
    return max(fitting)[2] if fitting else None

"""Which GPU a host has, as far as its settings say it before it is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS, VRAM, unified
from sparkwright.config.settings import HostSettings


@dataclass(frozen=True)
class Gpu:
    """A host's GPU.

    Attributes:
        cap: compute capability.
        vram_gib: memory of its own; None on unified memory, and where the card is not named.
        origin: who says so.
    """

    cap: str
    vram_gib: float | None
    origin: str

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool."""
        return unified(self.cap)


def gpu_of(
    settings: HostSettings,
    catalog: Catalog,
    groups: Collection[str],
    origin: Callable[[str], str],
) -> Gpu | None:
    """By the setting ``gpu``, the host's group, or the recipes of its other services."""
    if settings.gpu:
        return Gpu(GPUS[settings.gpu], VRAM.get(settings.gpu), f"{origin('gpu')}: gpu")
    for family in FAMILIES.values():
        if family.group in groups:
            return Gpu(family.cap, None, f"the host's group, {family.group}")
    recipes = [
        catalog.recipes[one.recipe]
        for one in settings.services.values()
        if one.recipe in catalog.recipes
    ]
    caps = [set(recipe.needs.compute_caps) for recipe in recipes]
    common = set.intersection(*caps) if caps else set()
    if len(common) != 1:
        return None
    vram = max((recipe.needs.vram_gib or 0 for recipe in recipes), default=0)
    return Gpu(common.pop(), vram or None, f"recipe {recipes[0].name} of the same host")

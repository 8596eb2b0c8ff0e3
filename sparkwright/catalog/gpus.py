"""GPUs: families by compute capability, cards by name, and recipes for them.

A new family is an entry of ``gpus.yaml``, the file of its group in group_data/ and its entries of
the catalog.
"""

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from sparkwright.catalog.entries import Recipe
from sparkwright.catalog.reader import Catalog
from sparkwright.host.lib.gpu import UNIFIED
from sparkwright.host.lib.records import dataclass
from sparkwright.text.shipped_yaml import beside


@dataclass(frozen=True)
class Family:
    """GPUs of one compute capability that sparkwright serves on.

    Attributes:
        group: group of the inventory; its file in group_data has the services.
        architecture: architecture of machines with these GPUs, by its name in registries.
        generation: name of the GPUs' kernels in vLLM's own recipes.
        cards: least dedicated memory of a card, in GiB, by the card's common names; None if the GPU
            has no dedicated memory.
        vllm_recipes: name of a card -> its name in vLLM's own recipes.
        pool_gib: lowest observed MemTotal, if CPU and GPU share one pool.
    """

    cap: str
    name: str
    group: str
    architecture: str
    generation: str
    cards: Mapping[str, float | None]
    vllm_recipes: Mapping[str, str]
    pool_gib: float | None = None


_DATA: dict[str, Any] = beside(__file__, "gpus.yaml")
FAMILIES = {entry["cap"]: Family(**entry) for entry in _DATA["families"]}
#: Compute capability of each card, and dedicated memory of cards with their own memory.
GPUS = {card: family.cap for family in FAMILIES.values() for card in family.cards}
VRAM = {card: gib for family in FAMILIES.values() for card, gib in family.cards.items() if gib}
#: The lowest observed MemTotal of a machine whose CPU and GPU share one pool: a DGX Spark.
LEAST_SPARK_GIB = min(family.pool_gib for family in FAMILIES.values() if family.pool_gib)
#: GiB that the system of a Spark needs for itself: an estimate of this project.
SYSTEM_GIB = 8.0
#: Share of unified memory above which the system thrashes.
MOST_ON_GB10 = 0.88
if TYPE_CHECKING:
    Card = str
else:
    #: A card's name.
    Card = Literal[tuple(GPUS)]


def unified(cap: str | None) -> bool:
    """Return whether CPU and GPU share one pool of memory."""
    return cap in UNIFIED


def card_of(cap: str) -> str:
    """A card of a compute capability; any card with dedicated memory for an unknown capability."""
    return next((card for card in GPUS if GPUS[card] == cap), next(iter(VRAM)))


def family(cap: str | None) -> str:
    """Return the name of a compute capability: ``12.1`` -> ``GB10 (sm_121a)``."""
    if cap in FAMILIES:
        return FAMILIES[cap].name
    match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", cap or "")
    if match is None:
        return "unknown architecture"
    others = _DATA["others"]
    return str(others.get(cap) or others.get(match[1]) or f"sm_{match[1]}{match[2]}")


def driver_major(version: str | None) -> int | None:
    """Return the major version: ``580.95.05`` -> 580; None without a number."""
    match = re.match(r"\d{1,9}", version or "")
    return int(match[0]) if match else None


def architectures(recipe: Recipe, catalog: Catalog) -> tuple[str, ...]:
    """Architectures of the recipe's image in the catalog."""
    image = catalog.images[recipe.image]
    return image.tags[recipe.tag or image.newest_tag].architectures


def spark_only(recipe: Recipe, catalog: Catalog) -> bool:
    """Return whether only Sparks have an architecture of the recipe's image."""
    return set(architectures(recipe, catalog)) == {FAMILIES[GPUS["spark"]].architecture}


def recipes_for(
    catalog: Catalog, architecture: str, caps: Collection[str | None], vram_gib: float | None = None
) -> list[str]:
    """Names of recipes for one host with one of these GPUs, whose image has the architecture.

    Args:
        architecture: architecture of the image, by its name in registries.
        caps: compute capabilities.
        vram_gib: dedicated memory of the card; with None, memory does not count.
    """
    return sorted(
        recipe.name
        for recipe in catalog.recipes.values()
        if set(caps) & set(recipe.needs.compute_caps)
        and not recipe.ranks
        and architecture in architectures(recipe, catalog)
        and (vram_gib is None or (recipe.needs.vram_gib or 0) <= vram_gib)
    )


def largest_for(gpu: str, catalog: Catalog) -> Recipe | None:
    """Return the recipe made for the most memory that a card of this name has; None if no recipe
    fits. This recipe is the default of a new site; an unproven recipe is the default only if no
    other recipe fits.

    The function supports only cards with dedicated memory: a Spark's pool is shared, and no recipe
    gives the GPU's part of the pool.
    """
    cap = GPUS[gpu]
    named = recipes_for(catalog, FAMILIES[cap].architecture, {cap}, VRAM.get(gpu, 0))
    fitting = [
        (recipe.status != "unproven", recipe.needs.vram_gib, name)
        for name in named
        if (recipe := catalog.recipes[name]).needs.vram_gib
    ]
    return catalog.recipes[max(fitting)[2]] if fitting else None

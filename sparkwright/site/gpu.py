"""The GPU of a host, as far as its settings say it before the host is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS, VRAM
from sparkwright.config.settings import HostSettings
from sparkwright.engines.derivation import Gpu
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake


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
        catalog.recipes[service.recipe]
        for service in settings.services.values()
        if service.recipe in catalog.recipes
    ]
    caps = [set(recipe.needs.compute_caps) for recipe in recipes]
    common = set.intersection(*caps) if caps else set()
    if len(common) != 1:
        return None
    vram = max((recipe.needs.vram_gib or 0 for recipe in recipes), default=0)
    return Gpu(common.pop(), vram or None, f"recipe {recipes[0].name} of the same host")


def gpu_question(host: str, where: str, repository: str) -> Finding:
    """The finding of a host whose GPU is not known."""
    return mistake(
        where,
        f"nothing says which GPU this host has, and {repository} is sized for it",
        f"gpu = one of {', '.join(sorted(GPUS))} in group_data or for the host",
        host,
        reason="image, memory share and context depend on it",
    )

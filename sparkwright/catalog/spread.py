"""Several hosts for one model: ranks of a cluster, or replicas behind a load balancer."""

from dataclasses import dataclass

from sparkwright.catalog.advice import Workload
from sparkwright.catalog.entries import Recipe
from sparkwright.text.shipped_yaml import beside


@dataclass(frozen=True)
class Spread:
    """How a recipe goes over several hosts.

    Attributes:
        by: ``ranks`` or ``replicas``.
    """

    by: str
    why: str
    source: str


def spread(recipe: Recipe, workload: Workload, hosts: int) -> Spread | None:
    """How several hosts serve a recipe best; None for one."""
    if hosts < 2:
        return None
    if recipe.ranks is not None and recipe.ranks.world > 1:
        why = f"it is made for {recipe.ranks.world} ranks: one host can't hold it"
        return Spread("ranks", why, recipe.source)
    drafts = recipe.drafter is not None or "speculative_config" in recipe.arguments
    reason = "drafts" if drafts else "latency" if workload == "latency" else "usual"
    return Spread(**beside(__file__, "spread.yaml")[reason])

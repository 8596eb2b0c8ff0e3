"""Several hosts for one model: ranks of a cluster, or replicas behind a load balancer."""

from dataclasses import dataclass

from sparkwright.catalog.advice import Workload
from sparkwright.catalog.entries import Recipe

#: Who measured, and what: nobody has with this tool.
_USERS = "reports of users of two DGX Sparks (gpt-oss-120b, Qwen3.6-27B); unproven here"
_MANY = "at 64 requests two replicas give 568 tokens/s together, two ranks 472"
_ONE = "one request has 69.0 tokens/s on two ranks, 57.5 on one host"
_DRAFTS = "one request has 8.1 tokens/s on two ranks, 22.6 on one host that drafts"


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
    if recipe.drafter is not None or "speculative_config" in recipe.arguments:
        return Spread("replicas", f"it fits one host, and drafts: {_DRAFTS}", _USERS)
    if workload == "latency":
        why = f"{_ONE}; where requests are many, replicas serve better: {_MANY}"
        return Spread("ranks", why, _USERS)
    return Spread("replicas", f"it fits one host: {_MANY}; {_ONE}", _USERS)

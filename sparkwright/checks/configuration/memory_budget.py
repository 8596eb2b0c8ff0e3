"""Memory budget of a host: weights, KV caches and other programs, and rules that check the total.

A Spark has one pool for CPU and GPU: services, sidecars and the system share this pool.
A dedicated card belongs to one service. The budget does not count ``shm_size``: it is only a limit,
which Docker ignores under ``ipc: host``.
"""

import math
from collections.abc import Iterator

from sparkwright.catalog import Catalog, gpus
from sparkwright.checks.configuration.facts import Context, Hardware, contexts
from sparkwright.findings.check import Symptom, check
from sparkwright.host.lib.records import dataclass
from sparkwright.plan.plan import HostPlan
from sparkwright.text.sizes import GIB

#: Rounding error of a sum of shares, in GiB.
_ROUNDED_GIB = 0.01


@dataclass(frozen=True)
class Budget:
    """Memory of a service, in GiB; None if unknown.

    Attributes:
        share: memory that the engine may take.
        kv: part of the share that is left for the KV cache.
        context: memory of one sequence of the full length.
        length: tokens of this sequence; None or 0 if the engine uses all memory that is left.
        offload: RAM for an offloaded KV cache.
    """

    share: float | None
    weights: float | None
    drafter: float
    kv: float | None
    context: float | None
    length: int | None
    offload: float


def budget(context: Context) -> Budget:
    """Compute the service's memory from the sizes in the catalog. An engine without a memory share
    takes as much as its weights and sequences need.
    """
    pool, limits, ranks = context.hardware.pool_gib, context.limits, context.recipe.ranks
    # Hosts of a cluster share the model: the budget covers the part of one host.
    parts = ranks.world if ranks is not None and context.service.rank is not None else 1
    placed = {} if context.unified else context.effective
    weights = context.engine.weights_gib(context.body, placed)
    resolved, named = context.plan.resolved, context.service.adapters.values()
    adapters = sum(resolved[adapter.key].size for adapter in named if resolved) / GIB
    drafter = ((context.drafter.size_gib or 0.0) if context.drafter else 0.0) / parts
    length = context.body.context if limits.context is None else limits.context
    cache = context.engine.kv_bytes(context.body, context.effective, length) if length else None
    sequence, weights = cache and cache / parts / GIB, weights and (weights + adapters) / parts
    needed, kv = (weights or 0.0) + drafter + context.engine.overhead_gib, None
    needed += context.engine.ram_gib(context.effective) if context.unified else 0.0
    sequences = limits.cache / length if limits.cache and length else limits.sequences or 1
    share: float | None = needed + (sequence or 0.0) * sequences
    if limits.share is not None:
        share = pool and pool * limits.share
        kv = share - needed if share is not None and weights is not None else None
    return Budget(share, weights, drafter, kv, sequence, length, context.service.offload_ram_gib)


def budgets(plan: HostPlan, catalog: Catalog, hardware: Hardware) -> dict[str, Budget]:
    """Budget of each service of a host."""
    return {own.service.name: budget(own) for own in contexts(plan, catalog, hardware)}


@check("unified-memory")
def _unified(context: Context) -> Iterator[Symptom]:
    total = context.hardware.memory_gib
    first = min(service.name for service in context.plan.services)
    if not context.hardware.unified or total is None or context.service.name != first:
        return  # reported once per host
    parts = []
    every = budgets(context.plan, context.catalog, context.hardware)
    shares = {name: (own.share or 0.0) + own.offload for name, own in every.items()}
    for service in context.plan.services:
        turns = service.settings.exclusive
        group = f" ({turns}: one at a time)" if turns else ""
        parts.append(f"{service.name} {shares[service.name]:.0f}{group}")
    sidecars = context.plan.settings.sidecars
    needed = gpus.SYSTEM_GIB + context.plan.largest(shares) + sum(sidecars.values())
    parts += [f"{name} {size:.0f}" for name, size in sidecars.items()]
    if needed > total:
        argument = context.engine.limit_names.get("share")
        fits = int((total - gpus.SYSTEM_GIB - sum(sidecars.values())) / total * 100) / 100
        yield Symptom(
            "unified-memory", "" if argument else "sized", needed=needed, total=total,
            each=", ".join(parts), system=gpus.SYSTEM_GIB, argument=argument,
            fits=max(0.0, min(gpus.MOST_ON_GB10, fits)),
        )  # fmt: skip


@check("card-memory")
def _card(context: Context) -> Iterator[Symptom]:
    """Check services that share one card; ``kv-cache`` checks a single service."""
    plan, total = context.plan, context.hardware.vram_gib
    # Without a card's name, the recipes' needs replace the card's memory.
    stated = context.hardware.gpus or (plan.gpu and plan.gpu.vram_gib)
    if not stated or total is None or context.service is not plan.services[0]:
        return  # reported once per host
    every = budgets(plan, context.catalog, context.hardware)
    for card in sorted({card for service in plan.services for card in service.gpus}) or [""]:
        shares = {
            service.name: every[service.name].share or 0.0
            for service in plan.services
            if not service.gpus or card in service.gpus
        }
        names, needed = plan.counted(shares), plan.largest(shares)
        if len(names) > 1 and needed > total + _ROUNDED_GIB:
            each = ", ".join(f"{name} {shares[name]:.1f}" for name in names)
            yield Symptom(card=card and f" {card}", needed=needed, total=total, each=each)


@check("kv-cache")
def _fits(context: Context) -> Iterator[Symptom]:
    own, names = budget(context), context.engine.limit_names
    if own.kv is None or own.share is None or own.weights is None:
        return
    if own.kv <= 0:
        pool = "memory" if context.hardware.unified else "the card's own memory"
        engine, argument = context.engine.overhead_gib, names["share"]
        needed = (own.share - own.kv + (own.context or 1.0)) / (context.hardware.pool_gib or 1.0)
        least = math.ceil(needed * 100) / 100
        yield Symptom("kv-cache", "no-room", budget=own, pool=pool,
                      engine=engine, argument=argument, least=least)  # fmt: skip
    elif own.length and own.context is not None and own.context > own.kv:
        fits = int(own.length * own.kv / own.context) // 1024 * 1024
        yield Symptom(length=own.length, budget=own, fits=fits, argument=names["context"])

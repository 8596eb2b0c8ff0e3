"""Memory: what weights, KV cache and everything else take of a host, and whether it fits.

A Spark has one pool for CPU and GPU: every service's share, sidecars and the system come out of it.
A card of its own is the service's alone. ``shm_size`` is a limit and no use, and Docker leaves it
aside under ``ipc: host``, so that it is counted nowhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.catalog.gpus import SYSTEM_GIB
from sparkwright.checks.configuration.facts import Context
from sparkwright.engines.vllm.gb10 import MOST_ON_GB10, SAFE_BATCH, SHARES
from sparkwright.engines.vllm.memory import (
    DEFAULT_UTILIZATION,
    OVERHEAD_GIB,
    kv_bytes_per_token,
)
from sparkwright.findings.check import Symptom, check
from sparkwright.text.sizes import GIB


@dataclass(frozen=True)
class Budget:
    """Memory of a service, in GiB; None where unknown.

    Attributes:
        share: what vLLM may take, by gpu_memory_utilization.
        kv: what is left of it for the KV cache.
        context: what one sequence of the full length takes of that.
    """

    share: float | None
    weights: float | None
    drafter: float
    kv: float | None
    context: float | None


def pool_gib(context: Context) -> float | None:
    """The memory that gpu_memory_utilization is a share of."""
    hardware = context.hardware
    return hardware.memory_gib if hardware.unified else hardware.vram_gib


def utilization(context: Context) -> float:
    """The share that vLLM takes: what is written, else its default."""
    return context.number("gpu_memory_utilization") or DEFAULT_UTILIZATION


def planned_length(context: Context) -> float | None:
    """Tokens that one sequence may take; None where vLLM takes what fits (``auto``, ``-1``)."""
    written = context.arguments.get("max_model_len")
    if written is not None and str(written).strip().lower() in ("auto", "-1"):
        return None
    return context.number("max_model_len") or context.body.context


def parts(context: Context) -> int:
    """How many GPUs of a cluster's hosts share the model; each host is judged for its own part, so
    that the smallest decides."""
    ranks = context.recipe.ranks
    return ranks.world if ranks is not None and context.service.rank is not None else 1


def budget(context: Context) -> Budget:
    """The service's memory as far as the catalog knows it."""
    pool = pool_gib(context)
    share = None if pool is None else pool * utilization(context)
    weights = context.body.loaded_gib or context.body.size_gib
    drafter = (context.drafter.size_gib or 0.0) if context.drafter else 0.0
    shared = parts(context)
    weights, drafter = weights and weights / shared, drafter / shared
    kv = None if share is None or weights is None else share - weights - drafter - OVERHEAD_GIB
    length = planned_length(context)
    dtype = str(context.value("kv_cache_dtype") or "auto")
    per_token = kv_bytes_per_token(context.body, dtype, int(length)) if length else None
    item = None if per_token is None or length is None else per_token * length / shared / GIB
    return Budget(share, weights, drafter, kv, item)


@check("gb10-memory-share", "gb10-batched-tokens")
def _on_a_spark(context: Context) -> Iterator[Symptom]:
    share, batch = utilization(context), context.number("max_num_batched_tokens")
    if not context.hardware.unified:
        return
    if share > MOST_ON_GB10:
        case = "" if "gpu_memory_utilization" in context.arguments else "default"
        yield Symptom("gb10-memory-share", case, share=share, remedy=SHARES)
    if batch is not None and batch > SAFE_BATCH:
        yield Symptom("gb10-batched-tokens", batch=batch, safe=SAFE_BATCH)


@check("unified-memory")
def _unified(context: Context) -> Iterator[Symptom]:
    total = context.hardware.memory_gib
    first = min(service.name for service in context.plan.services)
    if not context.hardware.unified or total is None or context.service.name != first:
        return  # reported once per host
    parts = []
    shares: dict[str, float] = {}
    for service in context.plan.services:
        own = budget(Context(context.plan, service, context.catalog, context.hardware))
        shares[service.name] = own.share or 0.0
        group = (
            f" ({service.settings.exclusive}: one at a time)" if service.settings.exclusive else ""
        )
        parts.append(f"{service.name} {own.share or 0:.0f}{group}")
    sidecars = context.plan.settings.sidecars
    needed = SYSTEM_GIB + context.plan.largest(shares) + sum(sidecars.values())
    parts += [f"{name} {size:.0f}" for name, size in sidecars.items()]
    if needed > total:
        each = ", ".join(parts)
        yield Symptom(needed=needed, total=total, each=each, system=SYSTEM_GIB, shares=SHARES)


@check("kv-cache")
def _fits(context: Context) -> Iterator[Symptom]:
    own, length = budget(context), planned_length(context) or 0
    if own.kv is None or own.share is None or own.weights is None:
        return
    if own.kv <= 0:
        pool = "memory" if context.hardware.unified else "the card's own memory"
        yield Symptom("kv-cache", "no-room", budget=own, pool=pool, engine=OVERHEAD_GIB)
    elif own.context is not None and own.context > own.kv:
        fits = int(length * own.kv / own.context) // 1024 * 1024
        yield Symptom(length=length, budget=own, fits=fits)

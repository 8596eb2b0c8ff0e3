"""Planned use of a host's memory, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.catalog import Catalog, gpus
from sparkwright.checks.configuration import facts, memory_budget
from sparkwright.plan.plan import HostPlan


@dataclass(frozen=True)
class Part:
    """A part of the memory, in GiB; ``mark`` is the part's character in a bar."""

    mark: str
    name: str
    gib: float


@dataclass(frozen=True)
class Memory:
    """A host's memory.

    Attributes:
        total_gib: all memory; None if unknown before the first observation of the host.
        unified: whether CPU and GPU share the memory.
    """

    total_gib: float | None
    unified: bool
    parts: tuple[Part, ...]

    @property
    def free_gib(self) -> float | None:
        """Remaining memory, in GiB; negative if the parts do not fit."""
        if self.total_gib is None:
            return None
        return self.total_gib - sum(part.gib for part in self.parts)

    @property
    def bar(self) -> Iterator[tuple[str, float]]:
        """Name and GiB of the four parts that a page draws; only ``free`` may be missing."""
        kinds = {"#": "weights", "=": "KV cache"}
        sums = dict.fromkeys(("weights", "KV cache", "others"), 0.0)
        for part in self.parts:
            sums[kinds.get(part.mark, "others")] += part.gib
        yield from sums.items()
        if (free := self.free_gib) is not None and free > 0:
            yield "free", free


def memory_of(plan: HostPlan, catalog: Catalog) -> Memory:
    """Memory of a planned host for weights, KV caches, sidecars and the system."""
    hardware = facts.assumed_hardware(plan)
    parts: list[Part] = []
    needs = memory_budget.budgets(plan, catalog, hardware)
    for name in plan.counted({name: own.share or 0.0 for name, own in needs.items()}):
        own = needs[name]
        weights = (own.weights or 0) + own.drafter
        parts.append(Part("#", f"{name} weights", weights))
        rest = max(0.0, (own.share or 0) - weights)
        parts.append(Part("=", f"{name} KV cache and engine", rest))
        if hardware.unified and own.offload:
            parts.append(Part("-", f"{name} offloaded KV cache", own.offload))
    parts += [Part("+", name, size) for name, size in plan.settings.sidecars.items()]
    if hardware.unified:
        parts.append(Part("o", "system", gpus.SYSTEM_GIB))
    return Memory(hardware.pool_gib, hardware.unified, tuple(parts))

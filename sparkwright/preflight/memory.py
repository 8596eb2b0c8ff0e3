"""The host's memory, against what the recipes need."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Finding
from sparkwright.plan.plan import GIB
from sparkwright.preflight.checks import HostCheck, error, warning


def check(host: HostCheck) -> Iterator[Finding]:
    """Total memory, and what is available of it before the first start."""
    services, memory = host.plan.services, host.observed.memory
    each = [service.needs.memory_gib for service in services]
    # On unified memory a recipe's need is the whole machine; how services share it is a rule's.
    needed = max(each, default=0) if any(gpu.unified for gpu in host.gpus) else sum(each)
    total, available = memory.total / GIB, memory.available / GIB
    if total < needed:
        yield error(
            "memory", f"{total:.1f} GiB (MemTotal)",
            f"{needed:g} GiB for {', '.join(service.name for service in services)}",
            "weights, KV cache and the system share what the host has",
            "take a recipe that needs less, or fewer services on this host",
            "needs of the recipe in the catalog",
        )  # fmt: skip
        return
    states = [host.observed.services.get(service.name) for service in services]
    # What our own running services hold counts as theirs already.
    running = any(state and state.container and state.container.running for state in states)
    if not running and available < 0.85 * needed:
        yield warning(
            "memory-available", f"{available:.1f} GiB of {total:.1f} GiB available",
            f"about {needed:g} GiB", "something else holds memory that the service needs",
            "look with 'ps aux --sort -rss | head'; drop caches with "
            "'sync; echo 3 | sudo tee /proc/sys/vm/drop_caches'",
        )  # fmt: skip

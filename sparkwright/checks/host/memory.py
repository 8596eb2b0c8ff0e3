"""The host's memory, against what the recipes need."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.facts import Context
from sparkwright.checks.configuration.memory import utilization
from sparkwright.checks.host.facts import HostFacts
from sparkwright.checks.host.hardware import hardware_of
from sparkwright.findings.check import Symptom, check
from sparkwright.text.sizes import GIB


@check("memory", "memory-available")
def _memory(host: HostFacts) -> Iterator[Symptom]:
    services, memory = host.plan.services, host.observed.memory
    if not services:
        return
    each = {service.name: service.needs.memory_gib for service in services}
    # On unified memory a recipe's need is the whole machine; how services share it is a rule's.
    unified = any(gpu.unified for gpu in host.gpus)
    needed = max(each.values(), default=0) if unified else host.plan.largest(each)
    total = memory.total / GIB
    if total < needed:
        names = ", ".join(service.name for service in services)
        yield Symptom(f"{total:.1f} GiB (MemTotal)", f"{needed:g} GiB for {names}")
        return
    # What our own running services hold counts as theirs already.
    if any(host.serves(service.name) for service in services):
        return
    yield from _available(host, needed)


def _available(host: HostFacts, needed: float) -> Iterator[Symptom]:
    """Before the first start: what is available, against what vLLM will ask for at once."""
    memory = host.observed.memory
    total, available = memory.total / GIB, memory.available / GIB
    if any(gpu.unified for gpu in host.gpus):
        catalog, hardware = host.desired.catalog, hardware_of(host)
        share = host.plan.largest(
            {
                service.name: utilization(Context(host.plan, service, catalog, hardware))
                for service in host.plan.services
            }
        )
        if share > 1:
            return  # more than there is: a rule's to report
        taken = share * total
        expected = f"{taken:.1f} GiB: {share:g} (gpu_memory_utilization) of what it has"
        lower = f"gpu_memory_utilization: {int(available / total * 100) / 100:g} in all, "
    else:
        taken, expected, lower = 0.85 * needed, f"about {needed:g} GiB", ""
    if available >= taken:
        return
    swap = f", {memory.swap / GIB:.1f} GiB of swap" if memory.swap else ""
    stop = (
        "sudo systemctl isolate multi-user.target (stops the desktop), " if memory.desktop else ""
    )
    yield Symptom(
        f"{available:.1f} GiB of {total:.1f} GiB available{swap}"
        + (", and a desktop runs" if memory.desktop else ""),
        expected,
        remedy=f"{lower}{stop}or drop caches: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; "
        "'ps aux --sort -rss | head' shows who holds it",
        check="memory-available",
    )

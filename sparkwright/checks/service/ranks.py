"""Ranks of a cluster: faults that a single rank shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.checks.service.facts import Facts
from sparkwright.checks.service.watch import still
from sparkwright.findings.check import Symptom, check
from sparkwright.host.doctor import ContainerSeen, ServiceSeen
from sparkwright.host.watch import thresholds


@dataclass(frozen=True)
class Rank:
    """One rank's service and container, and what is seen of its host."""

    host: str
    service: str
    facts: Facts
    seen: ServiceSeen
    container: ContainerSeen


def ranks(host: str, facts: Facts) -> Iterator[Rank]:
    """Services of a host that other hosts serve with it."""
    for name, one, _ in facts.each():
        if one.container is not None and one.container.number("nnodes"):
            yield Rank(host, name, facts, one, one.container)


@check("stuck-collective")
def _stuck(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for rank in ranks("", facts):
        # A follower has no metrics: its GPU is all that tells.
        if rank.seen.metrics and not still(rank.seen):
            continue
        for gpu in facts.gpu.gpus:
            busy, power, clock = gpu.busy_percent, gpu.power_w, gpu.clock_mhz
            if busy is None or power is None or busy < limits.stuck_busy:
                continue
            slow = clock is not None and clock < limits.gb10_busy_mhz  # gb10-low-power
            if gpu.unified and power < limits.stuck_watts and not slow:
                yield Symptom(
                    f"the GPU is {busy:.0f} % busy at {power:.0f} W", service=rank.service
                )

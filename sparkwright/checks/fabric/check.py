"""Checks of the fabric: what is known to go wrong between hosts that serve one model together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sparkwright.checks.fabric.cabling import Cable, cables
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.fabric import FabricState, Rail
from sparkwright.host.ranks.collective import used_rails

#: Who says so.
NVIDIA = "NVIDIA/dgx-spark-playbooks, connect-two-sparks and multi-sparks-through-switch"
EUGR = "eugr/spark-vllm-docker"
SPARKRUN = "spark-arena/sparkrun"
HOSTS = "reports of users"
#: What a port of a Spark reaches, in Mb/s, and the MTU that all of them use.
SPEED, MTU = 200_000, 9000


@dataclass(frozen=True)
class Fabric:
    """Hosts that serve together, as they were observed.

    Attributes:
        states: by host, in the cluster's order.
        shape: pair, ring or switch.
        images: by host, the id of the image that it serves with, where that is known.
    """

    states: Mapping[str, FabricState]
    shape: str
    images: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def cables(self) -> tuple[Cable, ...]:
        """Ports that see each other."""
        return cables(self.states)

    @cached_property
    def used(self) -> dict[str, tuple[Rail, ...]]:
        """By host, the rails that carry traffic."""
        return {host: used_rails(state, self.shape) for host, state in self.states.items()}


@dataclass(frozen=True)
class Symptom:
    """What was observed on a host, or between it and another; remedy where it differs."""

    host: str | None
    observed: str
    expected: str = ""
    remedy: str | None = None
    severity: Severity | None = None


@dataclass(frozen=True)
class Check:
    """A known fault of a fabric.

    Attributes:
        reason: the likely cause and what it leads to.
        remedy: what to do, as a command where there is one.
        source: who says so.
    """

    id: str
    severity: Severity
    reason: str
    remedy: str
    source: str
    look: Callable[[Fabric], Iterator[Symptom]]

    def findings(self, fabric: Fabric) -> Iterator[Finding]:
        """What it finds."""
        for symptom in self.look(fabric):
            yield Finding(
                id=self.id,
                severity=symptom.severity or self.severity,
                subject=Subject(symptom.host),
                observed=symptom.observed,
                expected=symptom.expected,
                reason=self.reason,
                remedy=symptom.remedy or self.remedy,
                source=self.source,
            )

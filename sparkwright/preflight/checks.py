"""What every check of preflight is given, and how it reports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sparkwright.catalog.gpu import Gpu, parse_query
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.preflight.observation import Probe
from sparkwright.resolve.registry import ARCHITECTURES

PROJECT = "sparkwright"
#: Where the cards list what a host must have.
CARDS = "cards of vllm-dflash and vllm-spark-omni-q36, hardware requirements"


@dataclass(frozen=True)
class HostCheck:
    """A host as it was observed, and what is desired of it.

    Attributes:
        now: the controller's clock at the time of the observation, seconds since the epoch.
    """

    desired: Desired
    probe: Probe
    now: float

    @property
    def plan(self) -> HostPlan:
        """The host's plan."""
        return self.desired.plan

    @cached_property
    def gpus(self) -> list[Gpu]:
        """What nvidia-smi lists; nothing where it fails."""
        return parse_query(self.probe.gpu.out) if self.probe.gpu.code == 0 else []

    @property
    def architecture(self) -> str:
        """The host's architecture in the registry's words."""
        return ARCHITECTURES.get(self.probe.architecture, self.probe.architecture)


def error(
    name: str, observed: str, expected: str, reason: str, remedy: str,
    source: str = PROJECT, service: str | None = None,
) -> Finding:  # fmt: skip
    """What refuses the host."""
    subject = Subject(service=service)
    return Finding(name, Severity.ERROR, subject, observed, expected, reason, remedy, source)


def warning(
    name: str, observed: str, expected: str, reason: str, remedy: str, source: str = PROJECT
) -> Finding:
    """What is reported and passed."""
    return Finding(name, Severity.WARNING, Subject(), observed, expected, reason, remedy, source)

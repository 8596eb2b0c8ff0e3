"""What a rule is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sparkwright.catalog import ArgumentValue, Catalog, Image, Model, Recipe, Scalar
from sparkwright.catalog.gpus import MACHINES
from sparkwright.findings.finding import Severity
from sparkwright.plan.plan import HostPlan, ServicePlan

#: The least MemTotal that was seen on a DGX Spark: 125513944 kB.
LEAST_SPARK_GIB = 119.7


@dataclass(frozen=True)
class Hardware:
    """What is known of a host: from its probe, or assumed from what its recipes need.

    Attributes:
        compute_cap: None where unknown.
        memory_gib: MemTotal.
        vram_gib: memory of the GPU itself; None on unified memory.
        architecture: of the registry's words (``arm64``); None where unknown.
    """

    compute_cap: str | None
    memory_gib: float | None
    vram_gib: float | None
    architecture: str | None

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool."""
        return self.compute_cap == "12.1"


def assumed_hardware(plan: HostPlan) -> Hardware:
    """What the recipes of a host are made for: enough to find most mistakes without a host."""
    caps = {cap for service in plan.services for cap in service.needs.compute_caps}
    vram = [service.needs.vram_gib for service in plan.services if service.needs.vram_gib]
    cap = next(iter(caps)) if len(caps) == 1 else None
    return Hardware(
        compute_cap=cap,
        memory_gib=LEAST_SPARK_GIB if cap == "12.1" else None,
        vram_gib=max(vram) if vram and cap != "12.1" else None,
        architecture=MACHINES.get(cap) if cap else None,
    )


@dataclass(frozen=True)
class Context:
    """A resolved service on a host, with everything that the catalog says of it."""

    plan: HostPlan
    service: ServicePlan
    catalog: Catalog
    hardware: Hardware

    @cached_property
    def recipe(self) -> Recipe:
        """The service's recipe."""
        return self.catalog.recipes[self.service.recipe]

    @cached_property
    def image(self) -> Image:
        """The service's image."""
        return self.catalog.images[self.service.image.image]

    @cached_property
    def vllm(self) -> str | None:
        """The vLLM version of the service's tag."""
        return self.image.tags[self.service.image.tag].vllm

    @cached_property
    def body(self) -> Model:
        """The model that is served."""
        return self.catalog.models[self.service.body.name]

    @cached_property
    def drafter(self) -> Model | None:
        """The model that drafts."""
        return self.catalog.models[self.service.drafter.name] if self.service.drafter else None

    @cached_property
    def arguments(self) -> Mapping[str, ArgumentValue]:
        """The resolved arguments."""
        return dict(self.service.arguments)

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The resolved environment."""
        return dict(self.service.environment)

    @cached_property
    def speculative(self) -> Mapping[str, Scalar | None]:
        """speculative_config; empty where the service does not speculate."""
        value = self.arguments.get("speculative_config")
        return value if isinstance(value, dict) else {}

    def number(self, argument: str) -> float | None:
        """An argument's number, or None where it has none."""
        value = self.arguments.get(argument)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    @cached_property
    def facts(self) -> Mapping[str, Scalar | None]:
        """What conditions of the catalog's issues go by."""
        found: dict[str, Scalar | None] = {
            f"argument.{key}": value
            for key, value in self.arguments.items()
            if not isinstance(value, list | dict)
        }
        found.update({f"speculative.{key}": value for key, value in self.speculative.items()})
        found.update({f"environment.{key}": value for key, value in self.environment.items()})
        found.update(
            {
                "body.family": self.body.family,
                "body.format": self.body.format,
                "body.name": self.body.name,
                "drafter.name": self.drafter.name if self.drafter else None,
                "compute_cap": self.hardware.compute_cap,
                "architecture": self.hardware.architecture,
                "tag": self.service.image.tag,
            }
        )
        return found


@dataclass(frozen=True)
class Match:
    """One place where a rule does not hold.

    Attributes:
        key: ``arguments.max_model_len`` and the like, below the service.
        remedy: what to write instead.
        reason, source, severity, id: where they differ from the rule's own.
    """

    key: str
    observed: str
    remedy: str
    reason: str | None = None
    source: str | None = None
    severity: Severity | None = None
    id: str | None = None


@dataclass(frozen=True)
class Rule:
    """A known mistake.

    Attributes:
        reason: why it matters, for someone who has not read the cards.
        source: who says so.
    """

    id: str
    severity: Severity
    title: str
    reason: str
    source: str
    check: Callable[[Context], Iterator[Match]]

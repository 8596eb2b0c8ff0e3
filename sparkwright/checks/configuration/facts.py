"""Facts that rules judge: a planned service, its hardware, and its entries of the catalog."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from sparkwright.catalog import Catalog, Recipe, Scalar
from sparkwright.catalog.gpus import FAMILIES, unified
from sparkwright.catalog.issues import folded
from sparkwright.engines import engine
from sparkwright.engines.arguments import amount
from sparkwright.engines.engine import Configuration
from sparkwright.host.lib.records import dataclass
from sparkwright.plan.plan import HostPlan, ServicePlan


@dataclass(frozen=True)
class Hardware:
    """Hardware of a host, either probed or assumed from the needs of its recipes.

    Attributes:
        compute_cap: compute capability; None if unknown.
        memory_gib: MemTotal of the host.
        vram_gib: dedicated memory of the GPU; None on unified memory.
        architecture: name in registries (``arm64``); None if unknown.
        gpus: number of GPUs; None if unknown.
    """

    compute_cap: str | None
    memory_gib: float | None
    vram_gib: float | None
    architecture: str | None
    gpus: int | None = None

    @property
    def unified(self) -> bool:
        """Return whether CPU and GPU share memory."""
        return unified(self.compute_cap)

    @property
    def pool_gib(self) -> float | None:
        """The memory that engines share."""
        return self.memory_gib if self.unified else self.vram_gib


def assumed_hardware(plan: HostPlan) -> Hardware:
    """Return the hardware for the GPU in the host's settings; without this setting, the hardware
    that the host's recipes need. This assumption lets the rules find most mistakes before the host
    is reachable.
    """
    each = [set(service.recipe.needs.compute_caps) for service in plan.services]
    caps = set.intersection(*each) if each else set()  # one GPU runs all services
    vram = [
        service.recipe.needs.vram_gib for service in plan.services if service.recipe.needs.vram_gib
    ]
    cap = plan.gpu.cap if plan.gpu else next(iter(caps)) if len(caps) == 1 else None
    if plan.gpu and plan.gpu.vram_gib:
        vram = [plan.gpu.vram_gib]
    family = FAMILIES.get(cap or "")
    return Hardware(
        compute_cap=cap,
        memory_gib=family.pool_gib if family else None,
        vram_gib=max(vram) if vram and cap and not unified(cap) else None,
        architecture=family.architecture if family else None,
        gpus=1 if unified(cap) else None,
    )


@dataclass(frozen=True)
class Context(Configuration):
    """A resolved service on a host, with its entries of the catalog."""

    plan: HostPlan
    service: ServicePlan
    catalog: Catalog
    hardware: Hardware

    @property
    def recipe(self) -> Recipe:
        """The service's recipe."""
        return self.service.recipe

    def defaulted(self, facts: Iterable[str]) -> str:
        """Describe the unset arguments among these facts, with their defaults, as the end of a
        sentence.
        """
        names = [fact.removeprefix("argument.") for fact in facts if fact.startswith("argument.")]
        texts = [
            f"{name} is not set, and its default is {self.defaults[name]}"
            for name in names
            if name not in self.written and name in self.defaults
        ]
        return f" ({'; '.join(texts)})" if texts else ""

    @cached_property
    def _scalars(self) -> dict[str, Scalar | None]:
        """Arguments, parts of arguments with several values, and variables."""
        scalars: dict[str, Scalar | None] = {}
        for key, value in self.parts.items():
            if not isinstance(value, list | dict):
                number = amount(value) if isinstance(value, str) else None
                scalars[f"argument.{key}"] = value if number is None else number
        speculative = self.limits.speculative or {}
        scalars |= {f"speculative.{key}": value for key, value in speculative.items()}
        return scalars | {f"environment.{key}": text for key, text in self.environment.items()}

    @cached_property
    def spelt(self) -> dict[str, str]:
        """Map each argument to the other argument, or to the variable, that sets its value."""
        written, result = self._scalars, {}
        for fact, spellings in self.engine.parser.spellings.items():
            if str(written.get(fact, "auto")).lower() in ("auto", "false"):
                for other, values in reversed(list(spellings.items())):
                    if other in written and (not values or folded(str(written[other])) in values):
                        result[fact] = other
        return result

    @cached_property
    def facts(self) -> Mapping[str, Scalar | None]:
        """Facts that the conditions of the catalog's issues refer to."""
        scalars, drafter = dict(self._scalars), self.drafter
        for fact, other in self.spelt.items():
            value, values = scalars[other], self.engine.parser.spellings[fact][other]
            scalars[fact] = values.get(folded(str(value)), value)
        return scalars | {
            "body.family": self.body.family,
            "body.format": self.body.format,
            "body.name": self.body.name,
            "drafter.name": drafter.name if drafter else None,
            "compute_cap": self.hardware.compute_cap,
            "vram_gib": self.hardware.vram_gib,
            "architecture": self.hardware.architecture,
            "image": self.image.name,
            "tag": self.service.image.tag,
        }


def contexts(plan: HostPlan, catalog: Catalog, hardware: Hardware) -> Iterator[Context]:
    """Context of every service of a host."""
    for service in plan.services:
        image, drafter = catalog.images[service.image.image], service.drafter
        gpus = len(service.gpus) or hardware.gpus
        if gpus is not None and service.rank is not None:
            gpus *= len(service.rank.hosts)
        yield Context(
            engine=engine(service.engine),
            version=service.version,
            image=image,
            body=catalog.models[service.body.name],
            drafter=catalog.models[drafter.name] if drafter else None,
            drafter_mount=drafter.mount if drafter else None,
            arguments=dict(service.arguments),
            environment=dict(service.environment),
            unified=hardware.unified,
            gpus=gpus,
            pool_gib=hardware.pool_gib,
            plan=plan,
            service=service,
            catalog=catalog,
            hardware=hardware,
        )

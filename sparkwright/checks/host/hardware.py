"""Driver, GPUs and architecture: whether the planned images and recipes run on this host."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sparkwright.catalog.gpus import driver_major, family, recipes_for, unified
from sparkwright.checks.host.facts import HostFacts
from sparkwright.checks.host.remedies import install
from sparkwright.findings.check import Symptom, check, each
from sparkwright.findings.finding import Severity, Subject
from sparkwright.host.lib.gpu import Gpu, Gpus
from sparkwright.host.observe import Distribution
from sparkwright.plan.plan import ServicePlan

LEAST_DRIVER = 580


def _services(host: HostFacts) -> Iterator[tuple[Subject, tuple[HostFacts, ServicePlan]]]:
    for service in host.plan.services:
        yield Subject(service=service.name), (host, service)


@check("nvidia-driver")
def _driver(host: HostFacts) -> Iterator[Symptom]:
    if host.plan.services:
        yield from driver_symptoms(host.observed.gpu, LEAST_DRIVER, host.observed.distribution)


def driver_symptoms(smi: Gpus, least: int, on: Distribution) -> Iterator[Symptom]:
    """Return faults of a host's driver, which must have at least this major version."""
    if case := _driver_fault(smi, least):
        yield Symptom(
            "nvidia-driver",
            case,
            smi=smi,
            message=(smi.message.strip().splitlines() or ["no message"])[0],
            driver=(smi.gpus[0].driver if smi.gpus else None) or "unknown",
            least=least,
            install=install("driver", on),
        )


def _driver_fault(smi: Gpus, least: int) -> str:
    """Return the case of the check: absent, hangs, fails, no-gpu or old; empty without a fault."""
    if not smi.installed:
        return "absent"
    if smi.code is None:
        return "hangs"
    if smi.code != 0:
        return "fails"
    old = any((driver_major(gpu.driver) or 0) < least for gpu in smi.gpus)
    return ("old" if old else "") if smi.gpus else "no-gpu"


def given(gpus: Sequence[Gpu], service: ServicePlan) -> list[Gpu]:
    """The GPUs that a service's container gets."""
    return [gpu for gpu in gpus if not service.gpus or {str(gpu.index), gpu.uuid} & {*service.gpus}]


@each(_services, "gpu", "gpu-memory", "gpu-unknown", "gpu-mixed", "architecture")
def _gpus(part: tuple[HostFacts, ServicePlan]) -> Iterator[Symptom]:
    host, service = part
    gpus, own, needs = host.gpus, given(host.gpus, service), service.recipe.needs
    caps, most = {gpu.compute_cap for gpu in own}, max(map(_gib, own), default=0)
    others = ", ".join(recipes_for(host.desired.catalog, host.architecture, caps, most or None))
    facts = {"user": f" for recipe {service.recipe.name}", "others": others}
    unfit = list(symptoms(own, needs.compute_caps, needs.vram_gib, **facts))
    yield from unfit
    names = {name for gpu in own for name in (str(gpu.index), gpu.uuid)}
    if gpus and (unknown := [name for name in service.gpus if name not in names]):
        there = ", ".join(map(_named, gpus))
        yield Symptom("gpu-unknown", name=service.name, unknown=", ".join(unknown), there=there)
    fitting = [gpu for gpu in own if _fits(gpu, needs.compute_caps, needs.vram_gib)]
    if not unfit and len(fitting) < len(own):
        judged = (f"{_named(gpu)}{'' if gpu in fitting else ' does not fit'}" for gpu in own)
        yield Symptom(
            "gpu-mixed",
            # A service that already runs on these GPUs only gets a warning.
            severity=Severity.WARNING if host.serves(service.name) else None,
            observed=", ".join(judged),
            service_plan=service,
            names=json.dumps([gpu.uuid or gpu.index for gpu in fitting]),
        )
    image = host.desired.resolution.image(service.image)
    if host.architecture not in image.platforms:
        yield Symptom(
            "architecture",
            "others" if others else "",
            machine=host.observed.architecture,
            image=service.image,
            platforms=", ".join(sorted(image.platforms)) or "no platform",
            needed=host.architecture,
            others=others,
        )


def _fits(gpu: Gpu, compute_caps: Sequence[str], vram_gib: float | None) -> bool:
    # A GPU with unified memory has no memory of its own to check.
    enough = unified(gpu.compute_cap) or _gib(gpu) >= (vram_gib or 0)
    return gpu.compute_cap in compute_caps and enough


def _gib(gpu: Gpu) -> float:
    return (gpu.memory_mib or 0) / 1024


def _named(gpu: Gpu) -> str:
    return f"{gpu.uuid or gpu.index} ({gpu.name})"


def symptoms(
    gpus: Sequence[Gpu], compute_caps: Sequence[str], vram_gib: float | None, **facts: Any
) -> Iterator[Symptom]:
    """Return faults of a host's GPUs; a host without GPUs is reported with its driver.

    Args:
        compute_caps: accepted compute capabilities, e.g. ``12.1``.
        vram_gib: required dedicated memory of the card; None if no dedicated memory is needed.
        facts: facts for the messages: ``user``, the recipe that needs the GPU, and ``others``,
            recipes that run on these GPUs, if any.
    """
    fitting = [gpu for gpu in gpus if gpu.compute_cap in compute_caps]
    if gpus and not fitting:
        there = (
            f"{gpu.name} (compute capability {gpu.compute_cap or 'unknown'}, "
            f"{family(gpu.compute_cap)})"
            for gpu in gpus
        )
        case, caps = "others" if facts.get("others") else "", " or ".join(compute_caps)
        yield Symptom("gpu", case, observed=", ".join(there), caps=caps, **facts)
    elif fitting and not any(_fits(gpu, compute_caps, vram_gib) for gpu in fitting):
        most = max(map(_gib, fitting))
        yield Symptom("gpu-memory", gpu=fitting[0], most=most, vram=vram_gib, **facts)

"""GPU and architecture: whether the planned images and recipes run on this host at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparkwright.catalog.gpus import family, recipes_for, unified
from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity
from sparkwright.host.lib.gpu import Gpu
from sparkwright.plan.plan import ServicePlan


@check("gpu", "gpu-memory", "gpu-unknown", "gpu-mixed")
def _gpus(host: HostFacts) -> Iterator[Symptom]:
    for service in host.plan.services:
        for symptom in _of_service(host.gpus, service):
            mixed = symptom.check == "gpu-mixed" and host.serves(service.name)
            severity = Severity.WARNING if mixed else None
            yield replace(symptom, severity=severity, service=service.name)


def given(gpus: Sequence[Gpu], service: ServicePlan) -> list[Gpu]:
    """The GPUs that a service's container gets."""
    return [one for one in gpus if not service.gpus or {str(one.index), one.uuid} & {*service.gpus}]


def _of_service(gpus: Sequence[Gpu], service: ServicePlan) -> Iterator[Symptom]:
    own, needs = given(gpus, service), service.needs
    unfit = list(symptoms(own, needs.compute_caps, needs.vram_gib, f" for recipe {service.recipe}"))
    yield from unfit
    known = {name for gpu in own for name in (str(gpu.index), gpu.uuid)}
    if gpus and (unknown := [name for name in service.gpus if name not in known]):
        yield Symptom(
            f"the host has no GPU {', '.join(unknown)}",
            "GPUs as nvidia-smi lists them: " + ", ".join(map(_named, gpus)),
            remedy=f"services.{service.name}.gpus: a list of these",
            check="gpu-unknown",
        )
    fitting = [gpu for gpu in own if _fits(gpu, needs.compute_caps, needs.vram_gib)]
    if not unfit and len(fitting) < len(own):
        names = json.dumps([gpu.uuid or gpu.index for gpu in fitting])
        yield Symptom(
            ", ".join(f"{_named(gpu)}{'' if gpu in fitting else ' does not fit'}" for gpu in own),
            f"GPUs that recipe {service.recipe} runs on, and no others",
            remedy=f"services.{service.name}.gpus = {names}",
            check="gpu-mixed",
        )


def _fits(gpu: Gpu, compute_caps: Sequence[str], vram_gib: float | None) -> bool:
    enough = _unified(gpu) or (gpu.memory_mib or 0) >= (vram_gib or 0) * 1024
    return gpu.compute_cap in compute_caps and enough


def _unified(gpu: Gpu) -> bool:
    """Whether it has no memory of its own, so that none is asked of it."""
    return unified(gpu.compute_cap)


def _named(gpu: Gpu) -> str:
    return f"{gpu.uuid or gpu.index} ({gpu.name})"


def symptoms(
    gpus: Sequence[Gpu], compute_caps: Sequence[str], vram_gib: float | None, user: str = ""
) -> Iterator[Symptom]:
    """Faults of a host's GPUs; a host without any is the driver's to report.

    Args:
        compute_caps: of which the host needs one, e.g. ``12.1``.
        vram_gib: memory of the card itself that is needed; None for none of its own.
        user: the recipe that needs it, for the message.
    """
    fitting = [gpu for gpu in gpus if gpu.compute_cap in compute_caps]
    if gpus and not fitting:
        yield Symptom(
            ", ".join(
                f"{gpu.name} (compute capability {gpu.compute_cap or 'unknown'}, "
                f"{family(gpu.compute_cap)})"
                for gpu in gpus
            ),
            f"compute capability {' or '.join(compute_caps)}{user}",
            check="gpu",
        )
    most = max(((gpu.memory_mib or 0) for gpu in fitting), default=0) / 1024
    if fitting and vram_gib is not None and most < vram_gib and not any(map(_unified, fitting)):
        yield Symptom(
            f"{fitting[0].name}: {most:.1f} GiB", f"{vram_gib:g} GiB{user}", check="gpu-memory"
        )


@check("architecture")
def _architecture(host: HostFacts) -> Iterator[Symptom]:
    own = host.architecture
    for service in host.plan.services:
        image = host.desired.resolution.image(service.image)
        if own not in image.platforms:
            others = recipes_for(host.desired.catalog, own, {gpu.compute_cap for gpu in host.gpus})
            yield Symptom(
                f"the host is {host.observed.architecture}; "
                f"{service.image.pull_name}:{service.image.tag} "
                f"has {', '.join(sorted(image.platforms)) or 'no platform'}",
                f"an image with linux/{own}",
                service=service.name,
                remedy=f"recipes of the catalog with linux/{own} for this GPU: {', '.join(others)}"
                if others
                else "take a tag or an image that has this architecture",
            )

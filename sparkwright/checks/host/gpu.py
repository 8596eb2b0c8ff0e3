"""GPU and architecture: whether the planned images and recipes run on this host at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparkwright.catalog.gpu import family
from sparkwright.catalog.gpus import UNIFIED, recipes_for
from sparkwright.checks.host.facts import CARDS, HostCheck, error
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.lib.gpu import Gpu
from sparkwright.plan.plan import ServicePlan


def check(host: HostCheck) -> Iterator[Finding]:
    """The generation and memory of the GPUs that each service gets, against its recipe's needs."""
    for service in host.plan.services:
        for finding in _of_service(host.gpus, service):
            serves = finding.id == "gpu-mixed" and host.serves(service.name)
            severity = Severity.WARNING if serves else finding.severity
            yield replace(finding, severity=severity, subject=Subject(service=service.name))


def given(gpus: Sequence[Gpu], service: ServicePlan) -> list[Gpu]:
    """The GPUs that a service's container gets."""
    return [one for one in gpus if not service.gpus or {str(one.index), one.uuid} & {*service.gpus}]


def _of_service(gpus: Sequence[Gpu], service: ServicePlan) -> Iterator[Finding]:
    own, needs = given(gpus, service), service.needs
    found = list(findings(own, needs.compute_caps, needs.vram_gib, f" for recipe {service.recipe}"))
    yield from found
    known = {name for one in own for name in (str(one.index), one.uuid)}
    if gpus and (unknown := [name for name in service.gpus if name not in known]):
        yield error(
            "gpu-unknown", f"the host has no GPU {', '.join(unknown)}",
            "GPUs as nvidia-smi lists them: " + ", ".join(map(_named, gpus)),
            "the container would not start", f"services.{service.name}.gpus: a list of these",
        )  # fmt: skip
    fitting = [one for one in own if _fits(one, needs.compute_caps, needs.vram_gib)]
    if not found and len(fitting) < len(own):
        yield error(
            "gpu-mixed",
            ", ".join(f"{_named(one)}{'' if one in fitting else ' does not fit'}" for one in own),
            f"GPUs that recipe {service.recipe} runs on, and no others",
            "a container that gets all of them can start on any of them", "services."
            f"{service.name}.gpus = {json.dumps([one.uuid or one.index for one in fitting])}",
            "reports of users (noonghunna/club-3090#120)",
        )  # fmt: skip


def _fits(gpu: Gpu, compute_caps: Sequence[str], vram_gib: float | None) -> bool:
    enough = _unified(gpu) or (gpu.memory_mib or 0) >= (vram_gib or 0) * 1024
    return gpu.compute_cap in compute_caps and enough


def _unified(gpu: Gpu) -> bool:
    """Whether it has no memory of its own, so that none is asked of it."""
    return gpu.compute_cap == UNIFIED


def _named(gpu: Gpu) -> str:
    return f"{gpu.uuid or gpu.index} ({gpu.name})"


def findings(
    gpus: Sequence[Gpu], compute_caps: Sequence[str], vram_gib: float | None, whom: str = ""
) -> Iterator[Finding]:
    """What is wrong with a host's GPUs; a host without any is the driver's to report.

    Args:
        compute_caps: of which one is needed, e.g. ``12.1``.
        vram_gib: memory of the card itself that is needed; None for none of its own.
        whom: who needs it, for the message.
    """
    fitting = [gpu for gpu in gpus if gpu.compute_cap in compute_caps]
    if gpus and not fitting:
        yield error(
            "gpu",
            ", ".join(
                f"{gpu.name} (compute capability {gpu.compute_cap or 'unknown'}, "
                f"{family(gpu.compute_cap)})"
                for gpu in gpus
            ),
            f"compute capability {' or '.join(compute_caps)}{whom}",
            "the image's NVFP4 kernels are for consumer Blackwell (sm_121a, sm_120) only",
            "take a recipe for this GPU, or take the host out of the inventory", CARDS,
        )  # fmt: skip
    most = max(((gpu.memory_mib or 0) for gpu in fitting), default=0) / 1024
    if fitting and vram_gib is not None and most < vram_gib and not any(map(_unified, fitting)):
        yield error(
            "gpu-memory", f"{fitting[0].name}: {most:.1f} GiB", f"{vram_gib:g} GiB{whom}",
            "weights, drafter and KV cache must fit into the card's own memory",
            "take a recipe for a smaller card",
        )  # fmt: skip


def check_architecture(host: HostCheck) -> Iterator[Finding]:
    """The image's architectures, against the host's."""
    own = host.architecture
    for service in host.plan.services:
        image = host.desired.resolution.image(service.image)
        if own not in image.platforms:
            others = recipes_for(host.desired.catalog, own, {gpu.compute_cap for gpu in host.gpus})
            yield error(
                "architecture",
                f"the host is {host.observed.architecture}; "
                f"{service.image.pull_name}:{service.image.tag} "
                f"has {', '.join(sorted(image.platforms)) or 'no platform'}",
                f"an image with linux/{own}",
                "an image for another architecture can be pulled but never started; the card "
                "claims RTX 50, and its image has been published for arm64 alone",
                f"recipes of the catalog with linux/{own} for this GPU: {', '.join(others)}"
                if others
                else "take a tag or an image that has this architecture",
                "the registry's manifest of this tag", service.name,
            )  # fmt: skip

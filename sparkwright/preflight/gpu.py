"""GPU and architecture: whether the planned images and recipes run on this host at all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.catalog import Catalog
from sparkwright.findings.finding import Finding
from sparkwright.preflight.checks import CARDS, HostCheck, error


def check(host: HostCheck) -> Iterator[Finding]:
    """The GPU's generation and memory, against what each recipe needs."""
    if not host.gpus:
        return
    for service in host.plan.services:
        needs = service.needs
        fitting = [gpu for gpu in host.gpus if gpu.compute_cap in needs.compute_caps]
        if not fitting:
            yield error(
                "gpu",
                ", ".join(
                    f"{gpu.name} (compute capability {gpu.compute_cap or 'unknown'}, {gpu.family})"
                    for gpu in host.gpus
                ),
                f"compute capability {' or '.join(needs.compute_caps)} for recipe {service.recipe}",
                "the image's NVFP4 kernels are for consumer Blackwell (sm_121a, sm_120) only",
                "take a recipe for this GPU, or take the host out of the inventory",
                CARDS, service.name,
            )  # fmt: skip
        elif needs.vram_gib is not None:
            most = max((gpu.memory_mib or 0) for gpu in fitting) / 1024
            if most < needs.vram_gib:
                yield error(
                    "gpu-memory", f"{fitting[0].name}: {most:.1f} GiB",
                    f"{needs.vram_gib:g} GiB for recipe {service.recipe}",
                    "weights, drafter and KV cache must fit into the card's own memory",
                    "take a recipe for a smaller card", service=service.name,
                )  # fmt: skip


def check_architecture(host: HostCheck) -> Iterator[Finding]:
    """The image's architectures, against the host's."""
    own = host.architecture
    for service in host.plan.services:
        image = host.desired.resolution.image(service.image)
        if own not in image.platforms:
            others = _recipes_for(host.desired.catalog, own, {gpu.compute_cap for gpu in host.gpus})
            yield error(
                "architecture",
                f"the host is {host.probe.architecture}; "
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


def _recipes_for(catalog: Catalog, architecture: str, caps: set[str | None]) -> list[str]:
    """Recipes whose image claims an architecture and that run on one of these GPUs."""
    return sorted(
        recipe.name
        for recipe in catalog.recipes.values()
        if caps & set(recipe.needs.compute_caps)
        and architecture
        in catalog.images[recipe.image]
        .tags[recipe.tag or catalog.images[recipe.image].newest_tag]
        .architectures
    )

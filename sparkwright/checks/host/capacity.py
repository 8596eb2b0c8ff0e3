"""Memory and disks of a host, compared with the needs of recipes, weights and images."""

from collections.abc import Iterator

from sparkwright.checks.configuration.facts import Context, Hardware, contexts
from sparkwright.checks.configuration.memory_budget import budget
from sparkwright.checks.host.facts import HostFacts
from sparkwright.checks.host.hardware import given
from sparkwright.findings.check import Symptom, check
from sparkwright.host.lib.disks import Disk
from sparkwright.plan.missing import missing_images, missing_models
from sparkwright.resolve.pickles import pickle_symptom
from sparkwright.text.sizes import GIB

#: Unpacked bytes of an image per byte pulled: 9 GB and 22 GB on the card of vllm-spark-omni-q36,
#: 21.4 GB and 50.6 GB in the repository of aeon-vllm-ultimate (2026-08-17).
UNPACKED_RATIO = 2.5
#: Share of nvidia-smi's total memory that CUDA can use: 31.4 of 31.84 GiB (club-3090#1087).
CUDA_PART = 31.4 / 31.84


def hardware_of(host: HostFacts) -> Hardware:
    """Hardware of an observed host."""
    # Of several GPUs, count only the GPUs that services get.
    gpus = [gpu for service in host.plan.services for gpu in given(host.gpus, service)]
    vram = max((gpu.memory_mib or 0 for gpu in gpus), default=0) / 1024 * CUDA_PART
    return Hardware(
        compute_cap=gpus[0].compute_cap if gpus else None,
        memory_gib=host.observed.memory.total / GIB,
        vram_gib=vram or None,
        architecture=host.architecture,
        gpus=len(host.gpus) or None,
    )


@check("memory", "memory-available", "gpu-memory-held")
def _memory(host: HostFacts) -> Iterator[Symptom]:
    services, total = host.plan.services, host.observed.memory.total / GIB
    if not services:
        return
    needs = {own.name: own.recipe.needs.memory_gib + own.offload_ram_gib for own in services}
    # On unified memory a recipe needs the whole machine; a rule checks how services share the
    # memory.
    unified = any(gpu.unified for gpu in host.gpus)
    needed = max(needs.values()) if unified else host.plan.largest(needs)
    if total < needed:
        yield Symptom(total=total, needed=needed, names=", ".join(needs))
    # Running sparkwright services already hold the memory that they need.
    elif not any(host.serves(service.name) for service in services):
        yield from _available(host, needed, unified=unified)
        yield from _held(host)


def _held(host: HostFacts) -> Iterator[Symptom]:
    """Before a first start, check for card memory that other programs hold."""
    holders = [*host.observed.gpu_holders, *(["a desktop"] * host.observed.memory.desktop)]
    own = [*contexts(host.plan, host.desired.catalog, hardware_of(host))]
    for gpu in host.gpus:
        total = (gpu.memory_mib or 0) / 1024 * CUDA_PART
        needs, sized = _needs(
            [context for context in own if gpu in given(host.gpus, context.service)], total
        )
        taken, free = host.plan.largest(needs), total - (gpu.memory_used_mib or 0) / 1024
        # A rule reports a need above the GPU's memory.
        if total and free < taken <= total:
            yield Symptom(
                "gpu-memory-held", "sized" if sized else "", gpu=gpu, free=free, total=total,
                holders=", ".join(holders) or "unknown", share=taken / total, taken=taken,
                lower=int(free / total * 100) / 100,
            )  # fmt: skip


def _needs(services: list[Context], total: float) -> tuple[dict[str, float], bool]:
    """Return the GiB that each service takes from a pool, and whether an engine without a share
    takes as much as it needs.
    """
    shares = {context.service.name: context.limits.share for context in services}
    needs = {
        context.service.name: (budget(context).share or 0.0) if share is None else share * total
        for context, share in zip(services, shares.values(), strict=True)
    }
    return needs, None in shares.values()


def _available(host: HostFacts, needed: float, *, unified: bool) -> Iterator[Symptom]:
    """Compare the available memory with the engines' requests before the first start."""
    memory = host.observed.memory
    total, available = memory.total / GIB, memory.available / GIB
    taken, case = 0.85 * needed, ""
    if unified:
        own = [*contexts(host.plan, host.desired.catalog, hardware_of(host))]
        needs, sized = _needs(own, total)
        taken, case = host.plan.largest(needs), "sized" if sized else "unified"
        if taken > total:  # a rule reports this need
            return
    if available >= taken:
        return
    stop = "sudo systemctl isolate multi-user.target (stops the desktop), "
    yield Symptom(
        "memory-available",
        case,
        available=available,
        total=total,
        swap=f", {memory.swap / GIB:.1f} GiB of swap" if memory.swap else "",
        desktop=", and a desktop runs" if memory.desktop else "",
        stop=stop if memory.desktop else "",
        needed=needed,
        taken=taken,
        share=taken / total,
        lower=int(available / total * 100) / 100,
    )


@check("disk")
def _disks(host: HostFacts) -> Iterator[Symptom]:
    """Check the free space of every file system that gets downloads."""
    headroom = host.plan.settings.disk_headroom_gib
    by_device: dict[int, tuple[list[str], Disk, int]] = {}
    for name, disk, size in fetches(host):
        if disk is not None:
            names, first, total = by_device.get(disk.device, ([], disk, 0))
            named = [*names, f"{size / GIB:.1f} GiB for {name}"]
            by_device[disk.device] = (named, first, total + size)
    for names, disk, total in by_device.values():
        free, needed = disk.free / GIB, total / GIB + headroom
        if total and free < needed:
            listed = ", ".join(names)
            yield Symptom(free=free, needed=needed, names=listed, headroom=headroom)
        if total and disk.read_only:
            yield Symptom("disk", "read-only")


def fetches(host: HostFacts) -> list[tuple[str, Disk | None, int]]:
    """Return the fetches of a deploy: purpose, file system and bytes."""
    settings, observed = host.plan.settings, host.observed
    weights = sum(
        max(0, model.resolved.size - observed.partial.get(model.directory, 0))
        for model in missing_models(host.desired, observed)
    )
    pulled = 0
    for image in missing_images(host.desired, observed):
        if platform := image.resolved.platforms.get(host.architecture):
            pulled += sum(size for _, size in platform.layers)
    models, services = settings.models_root, settings.services_root
    store = (observed.docker and observed.docker.store) or "Docker's root"
    caches = [
        (f"the KV cache under {path}", observed.disks.get(path), int(own.kv_offload.gib * GIB))
        for own in host.plan.services
        if own.kv_offload and (path := own.offload_directory)
        # Each release has its own cache, and the caches of kept releases stay full.
        if (state := observed.services.get(own.name)) is None or state.compose is None
    ]
    return [
        *caches,
        (f"weights under {models}", observed.disks.get(models), weights),
        (f"the image's parts under {services}", observed.disks.get(services), pulled),
        (f"the image under {store}", observed.docker_disk, int(pulled * (1 + UNPACKED_RATIO))),
    ]


@check("pickle")
def _pickles(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    for service in host.plan.services:
        for reference in service.models:
            model = host.desired.resolution.model(reference)
            if symptom := pickle_symptom(model, (*settings.allowed_pickles, *reference.code)):
                symptom.service = service.name
                symptom.values["key"] = ""
                yield symptom

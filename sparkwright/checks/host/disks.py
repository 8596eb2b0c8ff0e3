"""Disks: what is still to be fetched, against the free bytes of the file system it goes to."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.host.lib.disks import Disk
from sparkwright.plan.missing import missing_models
from sparkwright.text.sizes import GIB

#: Unpacked bytes of an image per byte pulled: 9 GB and 22 GB by the card of
#: vllm-spark-omni-q36, 21.4 GB and 50.6 GB by the repository of aeon-vllm-ultimate (2026-08-17).
UNPACKED_RATIO = 2.5


@check("disk")
def _disks(host: HostFacts) -> Iterator[Symptom]:
    """Free space of every file system that something is fetched to."""
    settings = host.plan.settings
    headroom = settings.disk_headroom_gib * GIB
    by_device: dict[int, tuple[list[str], Disk, int]] = {}
    for name, disk, size in _needs(host):
        if disk is None:
            continue
        names, first, total = by_device.get(disk.device, ([], disk, 0))
        by_device[disk.device] = ([*names, f"{size / GIB:.1f} GiB for {name}"], first, total + size)
    for names, disk, total in by_device.values():
        if total and disk.free < total + headroom:
            yield Symptom(
                f"{disk.free / GIB:.1f} GiB free",
                f"{(total + headroom) / GIB:.1f} GiB: {', '.join(names)}, "
                f"{settings.disk_headroom_gib:g} GiB to stay free",
            )
        if total and disk.read_only:
            yield Symptom(
                "the file system is read-only",
                "a writable one",
                reason="nothing can be fetched to it",
                remedy="look into 'sudo dmesg' for disk errors and remount it",
                source="sparkwright",
            )


def _needs(host: HostFacts) -> list[tuple[str, Disk | None, int]]:
    """What is to be fetched: for what, to which file system, how many bytes."""
    settings, observed = host.plan.settings, host.observed
    weights = sum(
        max(0, model.resolved.size - observed.partial.get(model.directory, 0))
        for model in missing_models(host.desired, observed)
    )
    images: dict[str, int] = {}
    for image in host.desired.images:
        if not observed.images.get(image.name, False):
            platform = image.platforms.get(host.architecture)
            images[image.name] = platform.pull_bytes if platform else 0
    pulled = sum(images.values())
    models, services = settings.models_root, settings.services_root
    store = (observed.docker and observed.docker.store) or "Docker's root"
    return [
        (f"weights under {models}", observed.disks.get(models), weights),
        (f"the image's parts under {services}", observed.disks.get(services), pulled),
        (f"the image under {store}", observed.docker_disk, int(pulled * (1 + UNPACKED_RATIO))),
    ]

"""The host itself: disks, memory, Docker, fetches, links between Sparks."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts
from sparkwright.findings.check import Symptom, check
from sparkwright.host.watch import thresholds
from sparkwright.text.marks import in_maintenance
from sparkwright.text.sizes import GIB

#: The most that those who run Sparks leave it at (timothystewart6/ubuntu-gb10).
_SWAPPINESS = 10


@check("maintenance")
def _maintenance(facts: Facts) -> Iterator[Symptom]:
    if facts.maintenance:
        yield Symptom(in_maintenance(facts.maintenance, facts.now))


@check("memory-pressure")
def _pressure(facts: Facts) -> Iterator[Symptom]:
    some = facts.pressure.get("memory", {}).get("some", 0.0)
    swapped = facts.memory.get("SwapTotal", 0) - facts.memory.get("SwapFree", 0)
    if some >= thresholds.THRESHOLDS.pressure:
        words = f"processes waited for memory {some:.0f} % of the last minute"
        yield Symptom(words + (f", {swapped / GIB:.1f} GiB in swap" if swapped > GIB else ""))


@check("memory-scarce")
def _scarce(facts: Facts) -> Iterator[Symptom]:
    available = facts.memory.get("MemAvailable")
    if available is not None and available < thresholds.THRESHOLDS.memory_least_gib * GIB:
        total = facts.memory.get("MemTotal", 0)
        yield Symptom(f"{available / GIB:.1f} of {total / GIB:.0f} GiB available")


@check("swap-on-unified-memory")
def _swap(facts: Facts) -> Iterator[Symptom]:
    size = facts.memory.get("SwapTotal", 0)
    if facts.unified and size and (facts.swappiness or 0) > _SWAPPINESS:
        yield Symptom(f"{size / GIB:.1f} GiB of swap, vm.swappiness {facts.swappiness}")


@check("desktop-on-unified-memory")
def _desktop(facts: Facts) -> Iterator[Symptom]:
    if facts.unified and facts.desktop:
        yield Symptom("a desktop runs, or its login screen")


@check("disk-pressure")
def _disk_pressure(facts: Facts) -> Iterator[Symptom]:
    full = facts.pressure.get("io", {}).get("full", 0.0)
    if full >= thresholds.THRESHOLDS.disk_pressure:
        yield Symptom(f"everything waited for disks {full:.0f} % of the last minute")


@check("docker-silent")
def _docker(facts: Facts) -> Iterator[Symptom]:
    if facts.docker is None and facts.services:
        yield Symptom("docker info: no answer")


@check("fetch-stuck")
def _fetches(facts: Facts) -> Iterator[Symptom]:
    for fetch in facts.fetches:
        idle = fetch.idle_seconds
        if idle > thresholds.THRESHOLDS.fetch_idle_seconds:
            yield Symptom(f"{fetch.unit}: no byte for {idle / 60:.0f} min")


@check("spark-link-slow")
def _links(facts: Facts) -> Iterator[Symptom]:
    for name, speed in facts.ports.items():
        if facts.unified and 0 < speed < thresholds.THRESHOLDS.link_mbps:
            yield Symptom(f"{name} is up at {speed} Mb/s")

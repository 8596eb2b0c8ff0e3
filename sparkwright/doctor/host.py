"""What the host itself tells: disk, memory, Docker, fetches, links between Sparks."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.doctor.check import Check, Sight
from sparkwright.doctor.facts import Facts
from sparkwright.doctor.thresholds import LIMITS
from sparkwright.findings.finding import Severity
from sparkwright.plan.plan import GIB

#: Seconds without a byte after which a fetch hangs, and GiB below which a host has no memory left.
_IDLE, _LEAST_GIB = 600, 4
#: What a port of the ConnectX-7 between two Sparks has, in Mb/s.
_LINK = 200_000


def _disks(facts: Facts) -> Iterator[Sight]:
    for disk in facts.disks:
        if disk.total and disk.free < disk.total * LIMITS.disk_least:
            yield Sight(f"{disk.path}: {disk.free / GIB:.1f} of {disk.total / GIB:.0f} GiB free")


def _pressure(facts: Facts) -> Iterator[Sight]:
    some = facts.pressure.get("memory", {}).get("some", 0.0)
    swapped = facts.memory.get("SwapTotal", 0) - facts.memory.get("SwapFree", 0)
    if some >= LIMITS.pressure:
        words = f"processes waited for memory {some:.0f} % of the last minute"
        yield Sight(words + (f", {swapped / GIB:.1f} GiB in swap" if swapped > GIB else ""))


def _scarce(facts: Facts) -> Iterator[Sight]:
    available = facts.memory.get("MemAvailable")
    if available is not None and available < _LEAST_GIB * GIB:
        total = facts.memory.get("MemTotal", 0)
        yield Sight(f"{available / GIB:.1f} of {total / GIB:.0f} GiB available")


def _disk_pressure(facts: Facts) -> Iterator[Sight]:
    full = facts.pressure.get("io", {}).get("full", 0.0)
    if full >= 3 * LIMITS.pressure:
        yield Sight(f"everything waited for disks {full:.0f} % of the last minute")


def _docker(facts: Facts) -> Iterator[Sight]:
    if facts.docker is None and facts.services:
        yield Sight("docker info: no answer")


def _fetches(facts: Facts) -> Iterator[Sight]:
    for fetch in facts.fetches:
        if float(fetch["idle_seconds"]) > _IDLE:
            yield Sight(f"{fetch['unit']}: no byte for {float(fetch['idle_seconds']) / 60:.0f} min")


def _links(facts: Facts) -> Iterator[Sight]:
    for name, speed in facts.ports.items():
        if facts.unified and 0 < speed < _LINK:
            yield Sight(f"{name} is up at {speed} Mb/s")


CHECKS = (
    Check(
        "disk-full", Severity.ERROR,
        "images, weights or logs have filled it: Docker, the journal and fetches break",
        "sparkwright models prune INVENTORY; docker system df; sudo journalctl --vacuum-size=1G",
        "reference hosts, Weights; seed 002, hardware requirements", _disks,
    ),
    Check(
        "memory-pressure", Severity.WARNING,
        "more is in use than fits: on unified memory the GPU waits for pages as well",
        "gpu_memory_utilization lower, sidecars off, swap off on a Spark",
        "seed 000, unified-memory tuning; reference hosts, Memory and disk", _pressure,
    ),
    Check(
        "memory-scarce", Severity.WARNING,
        "weights, KV cache, page cache and system share what the host has",
        "gpu_memory_utilization: 0.80 or less; before a start: sync; echo 3 | sudo tee "
        "/proc/sys/vm/drop_caches",
        "reference hosts, Memory and disk; seed 002, troubleshooting", _scarce,
    ),
    Check(
        "disk-pressure", Severity.WARNING,
        "a fetch, a swap or a failing disk keeps everybody waiting",
        "fetch_limit_mb = 40 on a host that serves; sudo iotop",
        "reference hosts, Weights", _disk_pressure,
    ),
    Check(
        "docker-silent", Severity.ERROR,
        "the daemon does not run, or hangs (a full disk does that)",
        "sudo systemctl status docker; sudo systemctl restart docker",
        "reference hosts, Containers", _docker,
    ),
    Check(
        "fetch-stuck", Severity.WARNING,
        "the other side went silent without closing",
        "sudo systemctl stop FETCH, and deploy again: it goes on from the bytes that are there",
        "reference hosts, Weights", _fetches,
    ),
    Check(
        "spark-link-slow", Severity.WARNING,
        "a cable or port between two Sparks runs below 200 Gb/s",
        "another cable; both ports of a twin in subnets of their own; ethtool must say 200000Mb/s",
        "reference hosts, Networking of Spark pairs", _links,
    ),
)  # fmt: skip

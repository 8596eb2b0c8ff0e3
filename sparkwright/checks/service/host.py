"""The host itself: disks, memory, Docker, fetches, links between Sparks."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.service import thresholds
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Severity
from sparkwright.text.marks import in_maintenance
from sparkwright.text.sizes import GIB

#: The most that those who run Sparks leave it at (timothystewart6/ubuntu-gb10).
_SWAPPINESS = 10


def _maintenance(facts: Facts) -> Iterator[Symptom]:
    if facts.maintenance:
        yield Symptom(in_maintenance(facts.maintenance, facts.now))


def _pressure(facts: Facts) -> Iterator[Symptom]:
    some = facts.pressure.get("memory", {}).get("some", 0.0)
    swapped = facts.memory.get("SwapTotal", 0) - facts.memory.get("SwapFree", 0)
    if some >= thresholds.THRESHOLDS.pressure:
        words = f"processes waited for memory {some:.0f} % of the last minute"
        yield Symptom(words + (f", {swapped / GIB:.1f} GiB in swap" if swapped > GIB else ""))


def _scarce(facts: Facts) -> Iterator[Symptom]:
    available = facts.memory.get("MemAvailable")
    if available is not None and available < thresholds.THRESHOLDS.memory_least_gib * GIB:
        total = facts.memory.get("MemTotal", 0)
        yield Symptom(f"{available / GIB:.1f} of {total / GIB:.0f} GiB available")


def _swap(facts: Facts) -> Iterator[Symptom]:
    size = facts.memory.get("SwapTotal", 0)
    if facts.unified and size and (facts.swappiness or 0) > _SWAPPINESS:
        yield Symptom(f"{size / GIB:.1f} GiB of swap, vm.swappiness {facts.swappiness}")


def _desktop(facts: Facts) -> Iterator[Symptom]:
    if facts.unified and facts.desktop:
        yield Symptom("a desktop runs, or its login screen")


def _disk_pressure(facts: Facts) -> Iterator[Symptom]:
    full = facts.pressure.get("io", {}).get("full", 0.0)
    if full >= thresholds.THRESHOLDS.disk_pressure:
        yield Symptom(f"everything waited for disks {full:.0f} % of the last minute")


def _docker(facts: Facts) -> Iterator[Symptom]:
    if facts.docker is None and facts.services:
        yield Symptom("docker info: no answer")


def _fetches(facts: Facts) -> Iterator[Symptom]:
    for fetch in facts.fetches:
        idle = fetch.idle_seconds
        if idle > thresholds.THRESHOLDS.fetch_idle_seconds:
            yield Symptom(f"{fetch.unit}: no byte for {idle / 60:.0f} min")


def _links(facts: Facts) -> Iterator[Symptom]:
    for name, speed in facts.ports.items():
        if facts.unified and 0 < speed < thresholds.THRESHOLDS.link_mbps:
            yield Symptom(f"{name} is up at {speed} Mb/s")


CHECKS = (
    Check(
        "maintenance", Severity.WARNING,
        "it was taken out of every pool by request, and deploys leave it alone",
        "sparkwright maintenance INVENTORY HOST off, once it is to serve again",
        "sparkwright", _maintenance,
    ),
    Check(
        "disk-full", Severity.ERROR,
        "images, weights or logs have filled it: Docker, the journal and fetches break",
        "sparkwright models prune INVENTORY; docker system df; sudo journalctl --vacuum-size=1G",
        "NVIDIA's playbooks and reports of users; card of vllm-dflash, hardware requirements",
    ),
    Check(
        "memory-pressure", Severity.WARNING,
        "more is in use than fits: on unified memory the GPU waits for pages as well",
        "gpu_memory_utilization lower, sidecars off, swap off on a Spark",
        "card of vllm-ultimate-dgx-spark, unified-memory tuning; NVIDIA's playbooks and reports "
        "of users", _pressure,
    ),
    Check(
        "memory-scarce", Severity.WARNING,
        "weights, KV cache, page cache and system share what the host has",
        "gpu_memory_utilization: 0.80 or less; before a start: sync; echo 3 | sudo tee "
        "/proc/sys/vm/drop_caches",
        "NVIDIA's playbooks and reports of users; card of vllm-dflash, troubleshooting", _scarce,
    ),
    Check(
        "swap-on-unified-memory", Severity.WARNING,
        "what is swapped out is the GPU's memory, too: a Spark that swaps stalls instead of "
        "failing (they come with 15 GB and swappiness 60)",
        "echo vm.swappiness=10 | sudo tee /etc/sysctl.d/90-swappiness.conf && sudo sysctl "
        "--system; or sudo swapoff -a",
        "reports of users (timothystewart6/ubuntu-gb10)", _swap,
    ),
    Check(
        "desktop-on-unified-memory", Severity.WARNING,
        "it takes a few GiB of the memory that the GPU has",
        "sudo systemctl set-default multi-user.target && sudo systemctl isolate multi-user.target",
        "NVIDIA's playbooks and reports of users", _desktop,
    ),
    Check(
        "disk-pressure", Severity.WARNING,
        "a fetch, swapping or a failing disk delays everything else",
        "download_limit_mb = 40 on a host that serves; sudo iotop",
        "NVIDIA's playbooks and reports of users", _disk_pressure,
    ),
    Check(
        "docker-silent", Severity.ERROR,
        "the daemon does not run, or hangs (a full disk does that)",
        "sudo systemctl status docker; sudo systemctl restart docker",
        "NVIDIA's playbooks and reports of users", _docker,
    ),
    Check(
        "fetch-stuck", Severity.WARNING,
        "the other side stopped sending without closing the connection",
        "sudo systemctl stop FETCH, and deploy again: it resumes from the bytes that are there",
        "NVIDIA's playbooks and reports of users", _fetches,
    ),
    Check(
        "spark-link-slow", Severity.WARNING,
        "a cable or port between two Sparks runs below 200 Gb/s",
        "another cable; both ports of a twin in subnets of their own; ethtool must say 200000Mb/s",
        "NVIDIA's playbooks and reports of users", _links,
    ),
)  # fmt: skip

"""Ranks of a cluster: what one of them shows, and what must not differ between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from sparkwright.checks.service import thresholds
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.evaluated import still
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Severity
from sparkwright.host.doctor import ContainerSeen, ServiceSeen
from sparkwright.text.sizes import GIB

_NCCL = re.compile(r"\bnccl==([0-9.]+)")


@dataclass(frozen=True)
class Rank:
    """One rank's service and container, and what is seen of its host."""

    host: str
    service: str
    facts: Facts
    seen: ServiceSeen
    container: ContainerSeen


def ranks(host: str, facts: Facts) -> Iterator[Rank]:
    """Services of a host that other hosts serve with it."""
    for name, one, _ in facts.each():
        if one.container is not None and one.container.number("nnodes"):
            yield Rank(host, name, facts, one, one.container)


def between(seen: Mapping[str, Facts]) -> Iterator[tuple[str, str, Symptom]]:
    """Host, check and symptom of what differs between the ranks that serve together."""
    groups: dict[tuple[str, str], list[Rank]] = {}
    for host, facts in seen.items():
        for rank in ranks(host, facts):
            head = rank.container.arguments.get("master_addr", "")
            groups.setdefault((rank.service, head), []).append(rank)
    for group in groups.values():
        for id_, observed in (*_differing(group), *_short_of_memory(group)):
            for rank in group:
                yield rank.host, id_, Symptom(observed, rank.service)


def _differing(group: Collection[Rank]) -> Iterator[tuple[str, str]]:
    for what, read in _EQUAL.items():
        values = {rank.host: value for rank in group if (value := read(rank))}
        if len(set(values.values())) > 1:
            said = ", ".join(f"{host} {value}" for host, value in values.items())
            yield "ranks-differ", f"{what}: {said}"


def _short_of_memory(group: Collection[Rank]) -> Iterator[tuple[str, str]]:
    free = {
        rank.host: rank.facts.memory["MemAvailable"] / GIB
        for rank in group
        if rank.facts.unified and "MemAvailable" in rank.facts.memory
    }
    if free and max(free.values()) - min(free.values()) > thresholds.THRESHOLDS.ranks_apart_gib:
        said = ", ".join(f"{host} {gib:.1f} GiB" for host, gib in free.items())
        yield "ranks-memory", f"available: {said}"


def _driver(rank: Rank) -> str | None:
    return next((gpu.driver for gpu in rank.facts.gpu.gpus if gpu.driver), None)


def _nccl(rank: Rank) -> str | None:
    found = _NCCL.search(rank.seen.last(_NCCL.pattern) or "")
    return found[1] if found else None


def _weights(rank: Rank) -> str:
    """Where each mounted model lies: its directory is named by its commit."""
    mounts = rank.container.mounts
    return ", ".join(sorted(f"{one.target} from {one.source}" for one in mounts))


#: What is the same on all ranks, or they wait for each other for ever.
_EQUAL: dict[str, Callable[[Rank], str | None]] = {
    "image": lambda rank: rank.container.image,
    "release": lambda rank: rank.container.release,
    "weights": _weights,
    "driver": _driver,
    "NCCL": _nccl,
}


def _stuck(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for rank in ranks("", facts):
        # A follower has no metrics: its GPU is all that tells.
        if rank.seen.metrics and not still(rank.seen):
            continue
        for gpu in facts.gpu.gpus:
            busy, power, clock = gpu.busy_percent, gpu.power_w, gpu.clock_mhz
            if busy is None or power is None or busy < limits.stuck_busy:
                continue
            slow = clock is not None and clock < limits.gb10_busy_mhz  # gb10-low-power
            if gpu.unified and power < limits.stuck_watts and not slow:
                yield Symptom(f"the GPU is {busy:.0f} % busy at {power:.0f} W", rank.service)


CHECKS = (
    Check(
        "stuck-collective", Severity.ERROR,
        "the ranks wait for each other in a collective that does not end: a GPU that computes "
        "draws more",
        "sudo systemctl restart UNIT on the head, which begins with fresh followers; then "
        "sparkwright fabric test, and one NCCL on all ranks",
        "reports of users (GLM-5.3-Flash-NVFP4-1M-KV-4x-DGX-Spark#6)", _stuck,
    ),
    Check(
        "ranks-differ", Severity.ERROR,
        "ranks of another image, weights, driver or NCCL hang at their start, or minutes later "
        "under load",
        "deploy the whole cluster again; the same driver on every host, then reboot it",
        "reports of users (vllm#42354, vllm#41725); spark-vllm-docker, which compares images",
    ),
    Check(
        "ranks-memory", Severity.WARNING,
        "a desktop or a process on one host takes what all ranks need: the one with the least "
        "memory ends first, and takes the others with it",
        "stop what else runs there; sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; or "
        "gpu_memory_utilization: 0.83",
        "reports of users (exllamav3#47, #118)",
    ),
)  # fmt: skip

"""Ranks of a cluster: faults of a single rank, and differences that make them fail together."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkwright.checks.service.facts import Facts, Serving, services
from sparkwright.checks.service.watch import still
from sparkwright.findings import thresholds
from sparkwright.findings.check import Judgement, Symptom, check
from sparkwright.host.doctor import ContainerSeen
from sparkwright.text.sizes import GIB

_NCCL = re.compile(r"\bnccl==([0-9.]+)")


@dataclass(frozen=True)
class Rank:
    """A rank's service and container."""

    host: str
    name: str
    service: Serving
    container: ContainerSeen


def _ranks(host: str, facts: Facts) -> Iterator[Rank]:
    """Services of a host that other hosts serve with it."""
    for subject, service in services(facts):
        if service.seen.container and service.limits.head is not None:
            yield Rank(host, subject.service or "", service, service.seen.container)


@check("stuck-collective")
def _stuck(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for rank in _ranks("", facts):
        # A follower has no metrics: its GPU is all that tells.
        if rank.service.seen.metrics and not still(rank.service.seen):
            continue
        for gpu in facts.gpu.gpus:
            busy, power, clock = gpu.busy_percent, gpu.power_w, gpu.clock_mhz
            if busy is None or power is None or busy < limits["stuck_busy"]:
                continue
            slow = clock is not None and clock < limits["gb10_busy_mhz"]  # gb10-low-power
            if gpu.unified and power < limits["stuck_watts"] and not slow:
                yield Symptom(service=rank.name, busy=busy, power=power)


def _clusters(hosts: Mapping[str, Facts]) -> Iterator[list[Rank]]:
    """The ranks that serve together."""
    clusters: dict[tuple[str, str | None], list[Rank]] = {}
    for host, facts in hosts.items():
        for rank in _ranks(host, facts):
            clusters.setdefault((rank.name, rank.service.limits.head), []).append(rank)
    yield from clusters.values()


def _equal(rank: Rank) -> dict[str, str | None]:
    """Values that are the same on all ranks, or they wait for each other for ever."""
    nccl = _NCCL.search(rank.service.seen.last(_NCCL.pattern) or "")
    # A mounted model's directory is named by its commit.
    mounts = sorted(f"{mount.target} from {mount.source}" for mount in rank.container.mounts)
    return {
        "image": rank.container.image,
        "release": rank.container.release,
        "weights": ", ".join(mounts),
        "driver": next((gpu.driver for gpu in rank.service.facts.gpu.gpus if gpu.driver), None),
        "NCCL": nccl[1] if nccl else None,
    }


def _differing(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    for cluster in _clusters(hosts):
        values = {rank.host: _equal(rank) for rank in cluster}
        for subject in ("image", "release", "weights", "driver", "NCCL"):
            given = {host: own[subject] for host, own in values.items() if own[subject]}
            if len(set(given.values())) > 1:
                each = ", ".join(f"{host} {value}" for host, value in given.items())
                yield from _on_each(cluster, f"{subject}: {each}")


def _short_of_memory(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    for cluster in _clusters(hosts):
        free = {
            rank.host: facts.memory["MemAvailable"] / GIB
            for rank in cluster
            if (facts := rank.service.facts).unified and "MemAvailable" in facts.memory
        }
        apart = max(free.values(), default=0) - min(free.values(), default=0)
        if apart > thresholds.THRESHOLDS["ranks_apart_gib"]:
            each = ", ".join(f"{host} {gib:.1f} GiB" for host, gib in free.items())
            yield from _on_each(cluster, f"available: {each}")


def _on_each(cluster: list[Rank], observed: str) -> Iterator[Symptom]:
    for rank in cluster:
        yield Symptom(host=rank.host, service=rank.name, observed=observed)


#: Judgements between hosts that serve together.
BETWEEN_HOSTS = [
    Judgement[Mapping[str, Facts]](("ranks-differ",), _differing),
    Judgement[Mapping[str, Facts]](("ranks-memory",), _short_of_memory),
]

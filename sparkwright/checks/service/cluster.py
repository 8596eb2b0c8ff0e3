"""Ranks of a cluster: faults of a single rank, and differences that make all ranks fail."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from sparkwright.checks.service.facts import Facts, Serving, services
from sparkwright.checks.service.watch import still
from sparkwright.findings import thresholds
from sparkwright.findings.check import Judgement, Symptom, check
from sparkwright.text.sizes import GIB

_NCCL = re.compile(r"\bnccl==([0-9.]+)")


@check("stuck-collective")
def _stuck(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.limits()
    for subject, rank in services(facts):
        # A follower has no metrics: only its GPU shows a hang.
        if rank.limits.head is None or (rank.seen.metrics and not still(rank)):
            continue
        for gpu in facts.gpu.gpus:
            busy, power, clock = gpu.busy_percent, gpu.power_w, gpu.clock_mhz
            if busy is None or power is None or busy < limits["stuck_busy"]:
                continue
            slow = clock is not None and clock < limits["gb10_busy_mhz"]  # check gb10-low-power
            if gpu.unified and power < limits["stuck_watts"] and not slow:
                yield Symptom(service=subject.service, busy=busy, power=power)


Cluster = tuple[str | None, dict[str, Serving]]


def _clusters(hosts: Mapping[str, Facts]) -> Iterator[Cluster]:
    """Services that several hosts serve together: the name, and the ranks by host."""
    clusters: defaultdict[tuple[str | None, str], dict[str, Serving]] = defaultdict(dict)
    for host, facts in hosts.items():
        for subject, rank in services(facts):
            if rank.limits.head is not None:
                clusters[subject.service, rank.limits.head][host] = rank
    yield from ((name, ranks) for (name, _), ranks in clusters.items())


def _equal(rank: Serving) -> dict[str, str | None]:
    """Values that must be equal on all ranks; otherwise the ranks wait for each other for ever."""
    nccl, container = _NCCL.search(rank.last(_NCCL.pattern) or ""), rank.seen.container
    result = {
        "driver": next((gpu.driver for gpu in rank.facts.gpu.gpus if gpu.driver), None),
        "NCCL": nccl[1] if nccl else None,
    }
    if container:
        # The directory of a mounted model has the commit's name. The head's socket is below /run.
        mounts = sorted(
            f"{mount.target} from {mount.source}"
            for mount in container.mounts
            if not mount.source.startswith("/run/")
        )
        result |= {"image": container.image, "release": container.release}
        result["weights"] = ", ".join(mounts)
    return result


def _differing(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    for cluster in _clusters(hosts):
        values = {host: _equal(rank) for host, rank in cluster[1].items()}
        for subject in ("image", "release", "weights", "driver", "NCCL"):
            given = {host: value for host, own in values.items() if (value := own.get(subject))}
            if len(set(given.values())) > 1:
                each = ", ".join(f"{host} {value}" for host, value in given.items())
                yield from _on_each(cluster, f"{subject}: {each}")


def _short_of_memory(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    apart = thresholds.limits()["ranks_apart_gib"]
    for cluster in _clusters(hosts):
        free = {
            host: rank.facts.memory["MemAvailable"] / GIB
            for host, rank in cluster[1].items()
            if rank.facts.unified and "MemAvailable" in rank.facts.memory
        }
        if free and max(free.values()) - min(free.values()) > apart:
            each = ", ".join(f"{host} {gib:.1f} GiB" for host, gib in free.items())
            yield from _on_each(cluster, f"available: {each}")


def _on_each(cluster: Cluster, observed: str) -> Iterator[Symptom]:
    name, ranks = cluster
    for host in ranks:
        yield Symptom(host=host, service=name, observed=observed)


#: Checks of hosts that serve together.
BETWEEN_HOSTS = [
    Judgement[Mapping[str, Facts]](("ranks-differ",), _differing),
    Judgement[Mapping[str, Facts]](("ranks-memory",), _short_of_memory),
]

"""Differences between the ranks of a cluster that make them fail together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sparkwright.checks.service.facts import Facts
from sparkwright.checks.service.ranks import Rank, ranks
from sparkwright.findings.check import Symptom, check
from sparkwright.host.watch import thresholds
from sparkwright.text.sizes import GIB

_NCCL = re.compile(r"\bnccl==([0-9.]+)")


def _clusters(hosts: Mapping[str, Facts]) -> Iterator[list[Rank]]:
    """The ranks that serve together."""
    clusters: dict[tuple[str, str], list[Rank]] = {}
    for host, facts in hosts.items():
        for rank in ranks(host, facts):
            head = rank.container.arguments.get("master_addr", "")
            clusters.setdefault((rank.service, head), []).append(rank)
    yield from clusters.values()


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


@check("ranks-differ")
def _differing(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    for cluster in _clusters(hosts):
        for subject, read in _EQUAL.items():
            values = {rank.host: value for rank in cluster if (value := read(rank))}
            if len(set(values.values())) > 1:
                each = ", ".join(f"{host} {value}" for host, value in values.items())
                yield from _on_each(cluster, f"{subject}: {each}")


@check("ranks-memory")
def _short_of_memory(hosts: Mapping[str, Facts]) -> Iterator[Symptom]:
    for cluster in _clusters(hosts):
        free = {
            rank.host: rank.facts.memory["MemAvailable"] / GIB
            for rank in cluster
            if rank.facts.unified and "MemAvailable" in rank.facts.memory
        }
        if free and max(free.values()) - min(free.values()) > thresholds.THRESHOLDS.ranks_apart_gib:
            each = ", ".join(f"{host} {gib:.1f} GiB" for host, gib in free.items())
            yield from _on_each(cluster, f"available: {each}")


def _on_each(cluster: list[Rank], observed: str) -> Iterator[Symptom]:
    yield from (Symptom(observed, host=rank.host, service=rank.service) for rank in cluster)

"""The clusters and fabrics of a fleet, judged over all their hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sparkwright.config.values import mapping
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, suggest

_MESSAGES = Messages(__file__)
#: The setting that names hosts of a fabric.
_KEY = "fabric_addresses"

if TYPE_CHECKING:  # `check` does not load the modules that render releases
    from sparkwright.plan.desired import Desired


def cluster_problems(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Faults of clusters as a whole; each host's plan has the faults of its own settings.

    Args:
        everyone: data of every host of the inventory; the data may be invalid.
    """
    settled: set[str] = set()
    for host, data in everyone.items():
        clusters = _clusters(data)
        for name in clusters:
            if host in _members(clusters[name]) and name not in settled:
                settled.add(name)
                yield from _of_a_cluster(host, name, everyone)
        for service, name in _users(data).items():
            members = _members(clusters.get(name))
            for other in members if host in members else ():
                if other in everyone and _users(everyone[other]).get(service) != name:
                    facts = {"other": other, "name": name, "service": service}
                    yield _MESSAGES.mistake("service-of-some", "services", other, **facts)


def _of_a_cluster(
    host: str, name: str, everyone: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Unknown members, and members with other settings of the same cluster."""
    cluster = _clusters(everyone[host])[name]
    for other in _members(cluster):
        if other not in everyone:
            near = suggest(other, list(everyone))
            yield _MESSAGES.mistake("no-host", f"clusters.{name}.hosts", name=other, near=near)
        elif _clusters(everyone[other]).get(name) != cluster:
            facts = {"other": other, "name": name, "host": host}
            yield _MESSAGES.mistake("unlike-clusters", f"clusters.{name}", other, **facts)


def _clusters(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(data.get("clusters"))


def _members(setting: object) -> list[str]:
    """Names in a cluster's setting ``hosts``; the check of the settings reports any other value."""
    hosts = mapping(setting).get("hosts")
    listed = hosts if isinstance(hosts, list | tuple) else ()
    return [host for host in listed if isinstance(host, str)]


def _users(data: Mapping[str, Any]) -> dict[str, str]:
    """Services of a host that belong to a cluster -> the cluster."""
    services = mapping(data.get("services"))
    clusters = {str(name): mapping(item).get("cluster") for name, item in services.items()}
    return {name: str(cluster) for name, cluster in clusters.items() if cluster}


def left_out(hosts: Iterable[str], everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Clusters with some hosts inside the run and some outside: ranks are switched together.

    Args:
        hosts: names of the run's hosts.
        everyone: data of every host of the inventory.
    """
    chosen = set(hosts)
    judged: set[str] = set()
    for host in sorted(chosen):
        for name in set(_users(everyone[host]).values()) - judged:
            members = [item for item in _members(_clusters(everyone[host]).get(name))
                       if item in everyone]  # fmt: skip
            absent = [item for item in members if item not in chosen]
            if host in members and absent:
                judged.add(name)
                facts = {"absent": ", ".join(absent), "limit": " --limit ".join(members)}
                yield _MESSAGES.mistake("part-of-a-cluster", f"clusters.{name}", **facts)


def fabric_problems(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Missing hosts and hosts with other settings, each host once.

    Args:
        everyone: data of every host of the inventory; the data may be invalid.
    """
    texts: set[str] = set()
    for host, data in everyone.items():
        for name in members(data):
            if name in texts:
                continue
            if name not in everyone:
                texts.add(name)
                near = suggest(name, list(everyone))
                yield _MESSAGES.mistake("no-host", f"{_KEY}.hosts", name=name, near=near)
            elif everyone[name].get(_KEY) != data[_KEY]:
                texts.update((name, host))
                yield _MESSAGES.mistake("unlike-addresses", _KEY, name, other=name, host=host)


def members(data: Mapping[str, Any]) -> list[str]:
    """The hosts that the setting ``fabric_addresses`` names."""
    return _members(data.get(_KEY))


def unlike_releases(hosts: Mapping[str, Desired]) -> Iterator[Finding]:
    """Ranks that would run a release other than their head's: other weights, image or arguments.

    Args:
        hosts: desired states of the hosts of a run.
    """
    services = {(host, service.name): service
                for host, desired in hosts.items() for service in desired.services}  # fmt: skip
    for (host, name), service in services.items():
        rank = service.rank
        for other in rank.hosts[1:] if rank and not service.follower else ():
            same = services.get((other, name))
            if same and same.release != service.release:
                facts = {"other": other, "host": host}
                yield _MESSAGES.mistake("unlike-releases", f"services.{name}", other, **facts)

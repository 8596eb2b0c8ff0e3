"""Groups of hosts that form one fabric, from the settings, the clusters, or the cables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparkwright.checks.fabric.cabling import Cable, cables, shape_of
from sparkwright.config.fabric import FabricAddresses
from sparkwright.findings.finding import Subject
from sparkwright.host.fabric import FabricState, Rail
from sparkwright.host.ranks.collective import used_rails

#: Speed of a Spark's port in Mb/s, and the MTU of all ports.
SPEED, MTU = 200_000, 9000


@dataclass(frozen=True)
class Fabric:
    """Hosts that serve together, as observed.

    Attributes:
        states: state of each host, in the cluster's order.
        shape: pair, ring or switch.
    """

    states: Mapping[str, FabricState]
    shape: str

    @cached_property
    def cables(self) -> tuple[Cable, ...]:
        """Ports that see each other."""
        return cables(self.states)

    @cached_property
    def used(self) -> dict[str, tuple[Rail, ...]]:
        """Rails that carry traffic, by host."""
        return {host: used_rails(state, self.shape) for host, state in self.states.items()}


def hosts(fabric: Fabric) -> Iterator[tuple[Subject, FabricState]]:
    """Every host of a fabric."""
    for host, state in fabric.states.items():
        yield Subject(host), state


def used_rails_of(fabric: Fabric) -> Iterator[tuple[Subject, Rail]]:
    """Every rail that carries traffic."""
    for host, rails in fabric.used.items():
        yield from ((Subject(host), rail) for rail in rails)


def cables_of(fabric: Fabric) -> Iterator[tuple[Subject, Cable]]:
    """Every cable, as its first host sees it."""
    for cable in fabric.cables:
        yield Subject(cable.host), cable


@dataclass(frozen=True)
class FabricLook:
    """A host's part of the fabric.

    Attributes:
        image: image of the host's service; None without a service.
        cluster: hosts of the host's cluster on ConnectX-7; empty without a cluster.
        addresses: ``fabric_addresses`` that name the host.
    """

    state: FabricState
    image: str | None = None
    cluster: tuple[str, ...] = ()
    addresses: FabricAddresses | None = None


def on_connectx(data: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the hosts of clusters on ConnectX-7, from settings that have not been validated yet.

    Args:
        data: host -> the host's settings.
    """
    return tuple(host for host, own in data.items() if any(_joins(host, own.get("clusters"))))


def _joins(host: str, clusters: Any) -> Iterator[bool]:
    for cluster in clusters.values() if isinstance(clusters, Mapping) else ():
        if isinstance(cluster, Mapping) and cluster.get("fabric") == "cx7":
            hosts = cluster.get("hosts")
            yield isinstance(hosts, list | tuple) and host in hosts


def of_looks(looks: Mapping[str, FabricLook]) -> tuple[Fabric, ...]:
    """Return the fabrics of observed hosts: ``fabric_addresses`` first, then clusters, then hosts
    that see each other.

    A host belongs to no fabric if the host has no ConnectX, and no setting names the host.
    """
    fabrics: list[Fabric] = []
    states = {name: look.state for name, look in looks.items()}
    left = {name: look.state for name, look in looks.items()
            if look.state.rails and not look.addresses}  # fmt: skip
    for wanted in dict.fromkeys(look.addresses for look in looks.values() if look.addresses):
        if members := {host: states[host] for host in wanted.hosts if host in states}:
            fabrics.append(Fabric(members, wanted.shape))
    for cluster in dict.fromkeys(look.cluster for look in looks.values()):
        if members := {host: left.pop(host) for host in cluster if host in left}:
            fabrics.append(_seen(members))
    return (*fabrics, *map(_seen, _cabled(left)))


def _seen(members: Mapping[str, FabricState]) -> Fabric:
    return Fabric(members, shape_of(members) or ("pair" if len(members) < 3 else "switch"))


def _cabled(states: Mapping[str, FabricState]) -> list[dict[str, FabricState]]:
    """Group hosts that see each other, directly or through other hosts; hosts without neighbours
    form one group.
    """
    group = {host: host for host in states}
    for cable in cables(states):
        old, new = group[cable.other], group[cable.host]
        group = {host: new if of == old else of for host, of in group.items()}
    members: dict[str, dict[str, FabricState]] = {}
    for host, of in group.items():
        members.setdefault(of, {})[host] = states[host]
    together = [own for own in members.values() if len(own) > 1]
    alone = {host: states[host] for own in members.values() if len(own) == 1 for host in own}
    return [*together, alone] if alone else together

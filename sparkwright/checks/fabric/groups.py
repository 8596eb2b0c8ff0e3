"""Which hosts of an inventory make one fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkwright.checks.fabric.cabling import cables, shape_of
from sparkwright.checks.fabric.facts import Fabric
from sparkwright.config.fabric import FabricAddresses
from sparkwright.host.fabric import FabricState
from sparkwright.host.lib.records import decode


def answered(answers: Mapping[str, Any]) -> tuple[Fabric, ...]:
    """The fabrics of hosts that were asked (``roles.fabric.looked``): host -> its answer."""
    states = {name: decode(FabricState, one["state"]) for name, one in answers.items()}
    named = {
        name: FabricAddresses.model_validate(one["addresses"])
        for name, one in answers.items()
        if one["addresses"]
    }
    images = {name: one.image for name, one in states.items() if one.image}
    clusters = {name: tuple(one["cluster"]) for name, one in answers.items() if one["cluster"]}
    return fabrics(states, named, clusters, images)


def on_connectx(data: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Hosts of clusters on ConnectX-7, by settings that nobody has judged yet.

    Args:
        data: host -> its data.
    """
    found: dict[str, None] = {}
    for host, own in data.items():
        clusters = own.get("clusters")
        for one in clusters.values() if isinstance(clusters, Mapping) else ():
            if isinstance(one, Mapping) and one.get("fabric") == "cx7":
                hosts = one.get("hosts")
                if isinstance(hosts, list | tuple) and host in hosts:
                    found[host] = None
    return tuple(found)


def fabrics(
    states: Mapping[str, FabricState],
    named: Mapping[str, FabricAddresses],
    clusters: Mapping[str, tuple[str, ...]],
    images: Mapping[str, str],
) -> tuple[Fabric, ...]:
    """The fabrics of these hosts: those of ``fabric_addresses``, then clusters, then hosts that see
    each other.

    A host without a ConnectX that no setting names belongs to none.

    Args:
        named: host -> its setting.
        clusters: host -> the hosts of its cluster, in their order.
        images: host -> id of the image that it serves with, as far as that is known.
    """
    found: list[Fabric] = []
    left = {host: state for host, state in states.items() if state.rails and host not in named}
    for wanted in dict.fromkeys(named.values()):
        members = {host: states[host] for host in wanted.hosts if host in states}
        if members:
            found.append(_fabric(members, wanted.shape, images))
    for hosts in dict.fromkeys(clusters.values()):
        if members := {host: left.pop(host) for host in hosts if host in left}:
            found.append(_fabric(members, _seen(members), images))
    found += [_fabric(members, _seen(members), images) for members in _cabled(left)]
    return tuple(found)


def _seen(members: Mapping[str, FabricState]) -> str:
    return shape_of(members) or ("pair" if len(members) < 3 else "switch")


def _fabric(members: Mapping[str, FabricState], shape: str, images: Mapping[str, str]) -> Fabric:
    return Fabric(members, shape, {host: images[host] for host in members if host in images})


def _cabled(states: Mapping[str, FabricState]) -> list[dict[str, FabricState]]:
    """Hosts that see each other, directly or over others; those that see nobody are one group."""
    group = {host: host for host in states}
    for one in cables(states):
        old, new = group[one.other], group[one.host]
        group = {host: new if of == old else of for host, of in group.items()}
    members: dict[str, dict[str, FabricState]] = {}
    for host, of in group.items():
        members.setdefault(of, {})[host] = states[host]
    alone = {
        host: state for one in members.values() if len(one) == 1 for host, state in one.items()
    }
    together = [one for one in members.values() if len(one) > 1]
    return [*together, *([alone] if alone else [])]

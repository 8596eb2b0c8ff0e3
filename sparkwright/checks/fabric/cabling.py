"""Cables between the ports of hosts, from the neighbours that each host sees."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from sparkwright.host.fabric import FabricState, Rail


@dataclass(frozen=True)
class Cable:
    """Two network devices that see each other; hosts in the order of the inventory."""

    host: str
    rail: Rail
    other: str
    other_rail: Rail


def cables(states: Mapping[str, FabricState]) -> tuple[Cable, ...]:
    """Return every pair of devices of different hosts where one device sees the other.

    Over a switch all twins see each other, so only pairs of the same twin are returned, one for
    each cable.
    """
    return tuple(
        Cable(host, rail, other, other_rail)
        for host, other in combinations(states, 2)
        for rail, other_rail in _joined(states[host], states[other])
    )


def _joined(state: FabricState, other: FabricState) -> Iterator[tuple[Rail, Rail]]:
    result = [(mine, theirs) for mine in state.rails for theirs in other.rails
             if _sees(mine, theirs) or _sees(theirs, mine)]  # fmt: skip
    straight = {id(mine) for mine, theirs in result if mine.twin == theirs.twin}
    # Behind a switch, or with two cables, a device sees both twins of the other host.
    yield from (
        (mine, theirs)
        for mine, theirs in result
        if mine.twin == theirs.twin or id(mine) not in straight
    )


def _sees(rail: Rail, other: Rail) -> bool:
    return any(neighbour.mac == other.mac for neighbour in rail.neighbours)


def unknown_neighbours(states: Mapping[str, FabricState]) -> dict[str, tuple[str, ...]]:
    """MAC addresses that a host's rails see and that belong to none of these hosts, by host."""
    own = {rail.mac for state in states.values() for rail in state.rails}
    return {
        host: tuple(dict.fromkeys(
            neighbour.mac for rail in state.rails for neighbour in rail.neighbours
            if neighbour.mac not in own
        ))
        for host, state in states.items()
    }  # fmt: skip


def shape_of(states: Mapping[str, FabricState]) -> str | None:
    """Return the shape of the cabling: pair, ring or switch; None if unknown.

    A device that sees two hosts is connected to a switch. Hosts are also connected to a switch if
    more hosts see each other than their cables allow.
    """
    reached: defaultdict[str, set[str]] = defaultdict(set)
    cages = set()
    for cable in cables(states):
        ends = (cable.host, cable.rail, cable.other), (cable.other, cable.other_rail, cable.host)
        for host, rail, other in ends:
            reached[rail.mac].add(other)
            cages.add((host, rail.cage))
    if any(len(hosts) > 1 for hosts in reached.values()):
        return "switch"
    if len(states) == 2 and reached:
        return "pair"
    return "ring" if reached and len(cages) == 2 * len(states) else None

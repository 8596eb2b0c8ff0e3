"""What is wrong between hosts of one fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_interface

from sparkwright.checks.fabric.cabling import unknown_neighbours
from sparkwright.checks.fabric.facts import Fabric
from sparkwright.findings.check import Symptom, check


@check("fabric-wrong-port")
def _cage(fabric: Fabric) -> Iterator[Symptom]:
    if fabric.shape == "switch":
        return
    ring = fabric.shape == "ring"
    said = set()
    for cable in fabric.cables:
        same = cable.rail.cage == cable.other_rail.cage
        ends = (cable.host, cable.rail.cage, cable.other, cable.other_rail.cage)
        if same is ring and ends not in said:
            said.add(ends)
            yield Symptom(
                f"port {cable.rail.cage} is cabled to port {cable.other_rail.cage} of "
                f"{cable.other}",
                "port 0 to port 1 of the next host" if ring else "the same port on both hosts",
                host=cable.host,
                remedy="" if ring else f"move the cable of {cable.other} to port {cable.rail.cage}",
            )


@check("fabric-second-cable")
def _second(fabric: Fabric) -> Iterator[Symptom]:
    if fabric.shape == "ring":
        return
    for host, state in fabric.states.items():
        if len({rail.cage for rail in state.rails if rail.carrier}) > 1:
            yield Symptom("both ports have a link", "one", host=host)


@check("fabric-other-host")
def _other(fabric: Fabric) -> Iterator[Symptom]:
    for host, macs in unknown_neighbours(fabric.states).items():
        reached = [one for one in fabric.cables if host in (one.host, one.other)]
        if macs and not reached:
            yield Symptom(
                f"its ports see {', '.join(macs)}", f"a port of {_but(fabric, host)}", host=host
            )


@check("fabric-ring-open")
def _apart(fabric: Fabric) -> Iterator[Symptom]:
    if fabric.shape != "ring" or not fabric.cables:
        return
    reached: dict[str, set[str]] = {host: set() for host in fabric.states}
    for cable in fabric.cables:
        reached[cable.host].add(cable.other)
        reached[cable.other].add(cable.host)
    for host, others in reached.items():
        if len(others) < 2:
            named = ", ".join(sorted(others)) or "nobody"
            yield Symptom(f"it is cabled to {named}", "two hosts of the ring", host=host)


@check("fabric-subnets-differ")
def _subnets(fabric: Fabric) -> Iterator[Symptom]:
    for cable in fabric.cables:
        if not (cable.rail.ipv4 and cable.other_rail.ipv4):
            continue
        mine, theirs = ip_interface(cable.rail.ipv4), ip_interface(cable.other_rail.ipv4)
        if mine.network != theirs.network:
            yield Symptom(
                f"{cable.rail.name} {mine}, and at its other end {cable.other_rail.name} of "
                f"{cable.other} {theirs}",
                "one subnet at both ends",
                host=cable.host,
            )


@check("fabric-address-twice")
def _twice(fabric: Fabric) -> Iterator[Symptom]:
    owners: dict[str, list[str]] = {}
    for host, rails in fabric.used.items():
        for rail in rails:
            if rail.ipv4:
                owners.setdefault(rail.ipv4.partition("/")[0], []).append(f"{host} {rail.name}")
    for address, names in owners.items():
        if len(names) > 1:
            yield Symptom(
                f"{address} is {' and '.join(names)}",
                "an address for each",
                host=names[0].partition(" ")[0],
            )


@check("fabric-mtus-differ")
def _mtus(fabric: Fabric) -> Iterator[Symptom]:
    for cable in fabric.cables:
        if cable.rail.mtu != cable.other_rail.mtu:
            yield Symptom(
                f"{cable.rail.name}: MTU {cable.rail.mtu}, {cable.other_rail.name} of "
                f"{cable.other}: {cable.other_rail.mtu}",
                "the same at both ends",
                host=cable.host,
            )


def _differing(said: Mapping[str, str | None], what: str) -> Iterator[Symptom]:
    known = {host: one for host, one in said.items() if one}
    if len(set(known.values())) > 1:
        each = ", ".join(f"{host} {one}" for host, one in known.items())
        yield Symptom(f"{what}: {each}", "the same on all ranks")


@check("fabric-drivers-differ")
def _drivers(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing({h: one.driver for h, one in fabric.states.items()}, "driver")


@check("fabric-images-differ")
def _images(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing(fabric.images, "image")


@check("fabric-kernels-differ")
def _kernels(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing({h: one.kernel for h, one in fabric.states.items()}, "kernel")


@check("fabric-driver-590")
def _driver(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if (state.driver or "").startswith("590."):
            yield Symptom(f"driver {state.driver}", "driver 580", host=host)


def _but(fabric: Fabric, host: str) -> str:
    return " or ".join(one for one in fabric.states if one != host)

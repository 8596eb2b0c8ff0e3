"""What is wrong between hosts of one fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_interface

from sparkwright.checks.fabric.cabling import unknown_neighbours
from sparkwright.checks.fabric.check import EUGR, HOSTS, NVIDIA, SPARKRUN, Check, Fabric, Symptom
from sparkwright.findings.finding import Severity


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
                cable.host,
                f"port {cable.rail.cage} is cabled to port {cable.other_rail.cage} of "
                f"{cable.other}",
                "port 0 to port 1 of the next host" if ring else "the same port on both hosts",
                remedy=None if ring else f"move the cable of {cable.other} to port "
                f"{cable.rail.cage}",
            )  # fmt: skip


def _second(fabric: Fabric) -> Iterator[Symptom]:
    if fabric.shape == "ring":
        return
    for host, state in fabric.states.items():
        if len({rail.cage for rail in state.rails if rail.carrier}) > 1:
            yield Symptom(host, "both ports have a link", "one")


def _other(fabric: Fabric) -> Iterator[Symptom]:
    for host, macs in unknown_neighbours(fabric.states).items():
        reached = [one for one in fabric.cables if host in (one.host, one.other)]
        if macs and not reached:
            yield Symptom(
                host, f"its ports see {', '.join(macs)}", f"a port of {_but(fabric, host)}"
            )


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
            yield Symptom(host, f"it is cabled to {named}", "two hosts of the ring")


def _subnets(fabric: Fabric) -> Iterator[Symptom]:
    for cable in fabric.cables:
        if not (cable.rail.ipv4 and cable.other_rail.ipv4):
            continue
        mine, theirs = ip_interface(cable.rail.ipv4), ip_interface(cable.other_rail.ipv4)
        if mine.network != theirs.network:
            yield Symptom(
                cable.host,
                f"{cable.rail.name} {mine}, and at its other end {cable.other_rail.name} of "
                f"{cable.other} {theirs}",
                "one subnet at both ends",
            )


def _twice(fabric: Fabric) -> Iterator[Symptom]:
    owners: dict[str, list[str]] = {}
    for host, rails in fabric.used.items():
        for rail in rails:
            if rail.ipv4:
                owners.setdefault(rail.ipv4.partition("/")[0], []).append(f"{host} {rail.name}")
    for address, names in owners.items():
        if len(names) > 1:
            yield Symptom(
                names[0].partition(" ")[0], f"{address} is {' and '.join(names)}",
                "an address for each",
            )  # fmt: skip


def _mtus(fabric: Fabric) -> Iterator[Symptom]:
    for cable in fabric.cables:
        if cable.rail.mtu != cable.other_rail.mtu:
            yield Symptom(
                cable.host,
                f"{cable.rail.name}: MTU {cable.rail.mtu}, {cable.other_rail.name} of "
                f"{cable.other}: {cable.other_rail.mtu}",
                "the same at both ends",
            )


def _differing(said: Mapping[str, str | None], what: str) -> Iterator[Symptom]:
    known = {host: one for host, one in said.items() if one}
    if len(set(known.values())) > 1:
        each = ", ".join(f"{host} {one}" for host, one in known.items())
        yield Symptom(None, f"{what}: {each}", "the same on all ranks")


def _drivers(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing({h: one.driver for h, one in fabric.states.items()}, "driver")


def _images(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing(fabric.images, "image")


def _kernels(fabric: Fabric) -> Iterator[Symptom]:
    yield from _differing({h: one.kernel for h, one in fabric.states.items()}, "kernel")


def _driver(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if (state.driver or "").startswith("590."):
            yield Symptom(host, f"driver {state.driver}", "driver 580")


def _but(fabric: Fabric, host: str) -> str:
    return " or ".join(one for one in fabric.states if one != host)


CHECKS = (
    Check(
        "fabric-wrong-port", Severity.ERROR,
        "a pair in different ports needs a configuration of its own on each host, and a ring with "
        "two equal ports joined fails in ibv_modify_qp with 110 (timed out)",
        "cable n1 port 0 to n2 port 1, n2 port 0 to n3 port 1, and so on to n1 port 1",
        f"{SPARKRUN}#135; {NVIDIA}", _cage,
    ),
    Check(
        "fabric-second-cable", Severity.WARNING,
        "both ports share the two PCIe links that one cable fills: a second one gains nothing",
        "take one cable out", NVIDIA, _second,
    ),
    Check(
        "fabric-other-host", Severity.ERROR,
        "the cable leads to a host that is not of this cluster",
        "look which host the cable leads to, or name that host in the cluster", NVIDIA, _other,
    ),
    Check(
        "fabric-ring-open", Severity.ERROR,
        "in a ring each host is cabled to two others; NCCL waits for the one that is missing",
        "cable n1 port 0 to n2 port 1, n2 port 0 to n3 port 1, and so on to n1 port 1",
        f"{NVIDIA}; {EUGR}", _apart,
    ),
    Check(
        "fabric-subnets-differ", Severity.ERROR,
        "both ends of a cable must be in one subnet to reach each other",
        "correct the addresses in /etc/netplan, then sudo netplan apply; or fabric_addresses",
        NVIDIA, _subnets,
    ),
    Check(
        "fabric-address-twice", Severity.ERROR,
        "two devices with one address answer in each other's place",
        "give each an address of its own in /etc/netplan", NVIDIA, _twice,
    ),
    Check(
        "fabric-mtus-differ", Severity.ERROR,
        "the larger packets are lost: IBV_WC_RETRY_EXC_ERR(12)",
        "mtu: 9000 on both in netplan", EUGR, _mtus,
    ),
    Check(
        "fabric-drivers-differ", Severity.WARNING,
        "everybody who reports a fabric that works has the same driver on all its hosts",
        "the same driver on all hosts of the cluster, then reboot", HOSTS, _drivers,
    ),
    Check(
        "fabric-driver-590", Severity.WARNING,
        "driver 590 has ended in a deadlock while CUDA graphs were captured on two Sparks",
        "driver 580", HOSTS, _driver,
    ),
    Check(
        "fabric-kernels-differ", Severity.WARNING,
        "some kernels break RDMA (7.0.0-1019): equal ones are one cause less",
        "the same kernel on all hosts of the cluster", f"{EUGR}#392", _kernels,
    ),
    Check(
        "fabric-images-differ", Severity.ERROR,
        "ranks of different images speak different versions of vLLM and NCCL",
        "sparkwright deploy INVENTORY brings all ranks to one release", EUGR, _images,
    ),
)  # fmt: skip

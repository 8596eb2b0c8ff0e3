"""What is wrong with one host's part of the fabric."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_interface
from itertools import combinations

from sparkwright.checks.fabric.facts import MTU, SPEED, Fabric
from sparkwright.findings.check import Symptom, check
from sparkwright.host.fabric import Rail


def _used(fabric: Fabric) -> Iterator[tuple[str, Rail]]:
    for host, rails in fabric.used.items():
        yield from ((host, rail) for rail in rails)


@check("fabric-no-connectx")
def _none(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if not state.rails:
            yield Symptom("no network device of a ConnectX", "four, two of each port", host=host)


@check("fabric-link-down")
def _down(fabric: Fabric) -> Iterator[Symptom]:
    needed = 2 if fabric.shape == "ring" else 1
    for host, state in fabric.states.items():
        up = {rail.cage for rail in state.rails if rail.carrier}
        if state.rails and len(up) < needed:
            there = f"port {min(up)} alone has a link" if up else "no port has a link"
            yield Symptom(there, "both ports" if needed == 2 else "one port", host=host)


@check("fabric-twin-down")
def _twin(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        for cage in sorted({rail.cage for rail in state.rails}):
            twins = [rail for rail in state.rails if rail.cage == cage]
            up = [rail for rail in twins if rail.carrier]
            if len(up) != 1:
                continue
            others = [one.name for one in twins if one is not up[0]]
            name = others[0] if others else "its twin"
            yield Symptom(
                f"port {cage}: {up[0].name} is up, {name} is not",
                "both twins up",
                host=host,
                remedy=f"sudo ip link set {name} up" if others else "",
            )


@check("fabric-speed")
def _speed(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.speed is not None and rail.speed < SPEED:
            yield Symptom(
                f"{rail.name}: {rail.speed} Mb/s",
                f"{SPEED} Mb/s",
                host=host,
                remedy=f"sudo ethtool {rail.name} must say {SPEED}Mb/s: set the switch's port to "
                "200G without autonegotiation, or take another cable",
            )


@check("fabric-mtu")
def _mtu(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.mtu < MTU:
            yield Symptom(
                f"{rail.name}: MTU {rail.mtu}",
                f"MTU {MTU} on every rail and the switch",
                host=host,
                remedy=f"sudo ip link set {rail.name} mtu {MTU}; for good: mtu: {MTU} in netplan, "
                "or fabric_addresses",
            )


@check("fabric-no-address")
def _address(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.ipv4 is None:
            yield Symptom(f"{rail.name}: no IPv4 address", "one, in a subnet of its own", host=host)


@check("fabric-one-subnet")
def _one_subnet(fabric: Fabric) -> Iterator[Symptom]:
    for host, rails in fabric.used.items():
        at = [(rail, ip_interface(rail.ipv4)) for rail in rails if rail.ipv4]
        for (one, first), (two, second) in combinations(at, 2):
            if first.network.overlaps(second.network):
                yield Symptom(
                    f"{one.name} {first}, {two.name} {second}",
                    "a subnet for each of them",
                    host=host,
                )


@check("fabric-rdma-down")
def _rdma(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        for rail in state.rails:
            if not rail.carrier:
                continue
            if rail.rdma is None:
                yield Symptom(
                    f"{rail.name}: no RDMA device",
                    "one, ACTIVE",
                    host=host,
                    remedy="sudo modprobe mlx5_ib; ibdev2netdev shows it",
                )
            elif rail.rdma.state != "ACTIVE":
                state_of = rail.rdma.state or "no state"
                yield Symptom(f"{rail.rdma.name} ({rail.name}): {state_of}", "ACTIVE", host=host)


@check("fabric-no-gid")
def _gid(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.ipv4 is None or rail.rdma is None:
            continue
        address = rail.ipv4.partition("/")[0]
        kinds = [gid.type for gid in rail.rdma.gids if gid.address == address]
        if "RoCE v2" not in kinds:
            seen = ", ".join(kinds) or "none"
            yield Symptom(
                f"{rail.rdma.name}: GIDs of {address}: {seen}",
                "a RoCE v2 GID",
                host=host,
                remedy=f"sudo ip link set {rail.name} down, then up; show_gids lists them",
            )


@check("fabric-cma")
def _cma(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if state.rails and state.cma_total == 0:
            yield Symptom(f"CmaTotal 0 kB, kernel {state.kernel}", "CmaTotal above 0", host=host)


@check("fabric-two-nccl")
def _nccl(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        for loaded in state.nccl:
            yield Symptom(f"one process has loaded {' and '.join(loaded)}", "one NCCL", host=host)

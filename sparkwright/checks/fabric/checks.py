"""Faults of one host's part of a fabric, and faults between the hosts of a fabric."""

from collections.abc import Iterator
from ipaddress import ip_interface
from itertools import combinations

from sparkwright.checks.fabric import cabling, groups
from sparkwright.findings.check import Symptom, check, each
from sparkwright.host.fabric import FabricState, Rail
from sparkwright.text.sizes import GIB


@each(
    groups.hosts, "fabric-no-connectx", "fabric-cma", "fabric-two-nccl", "fabric-driver-590",
    "fabric-rdma-down",
)  # fmt: skip
def _host(state: FabricState) -> Iterator[Symptom]:
    if not state.rails:
        yield Symptom("fabric-no-connectx")
    elif state.cma_over:
        yield Symptom("fabric-cma", kernel=state.kernel, over=state.cma_over / GIB)
    for loaded in state.nccl:
        yield Symptom("fabric-two-nccl", names=" and ".join(loaded))
    if (state.driver or "").startswith("590."):
        yield Symptom("fabric-driver-590", driver=state.driver)
    for rail in state.rails:
        if rail.carrier and rail.rdma is None:
            yield Symptom("fabric-rdma-down", "absent", rail=rail)
        elif rail.carrier and rail.rdma and rail.rdma.state != "ACTIVE":
            yield Symptom("fabric-rdma-down", rail=rail, state=rail.rdma.state or "no state")


@check("fabric-link-down", "fabric-second-cable")
def _links(fabric: groups.Fabric) -> Iterator[Symptom]:
    needed = 2 if fabric.shape == "ring" else 1
    for host, state in fabric.states.items():
        up = {rail.cage for rail in state.rails if rail.carrier}
        if state.rails and len(up) < needed:
            there = f"port {min(up)} alone has a link" if up else "no port has a link"
            ports = "both ports" if needed == 2 else "one port"
            yield Symptom("fabric-link-down", host=host, observed=there, expected=ports)
        elif len(up) > needed:
            yield Symptom("fabric-second-cable", host=host)


@each(groups.hosts, "fabric-twin-down")
def _twin(state: FabricState) -> Iterator[Symptom]:
    for cage in sorted({rail.cage for rail in state.rails}):
        twins = [rail for rail in state.rails if rail.cage == cage]
        up = [rail for rail in twins if rail.carrier]
        if len(up) == 1:
            others = [rail.name for rail in twins if rail is not up[0]]
            name, case = (others[0], "there") if others else ("its twin", "")
            yield Symptom("fabric-twin-down", case, cage=cage, up=up[0].name, name=name)


@each(groups.used_rails_of, "fabric-speed", "fabric-mtu", "fabric-no-address", "fabric-no-gid")
def _rail(rail: Rail) -> Iterator[Symptom]:
    if rail.speed is not None and rail.speed < groups.SPEED:
        yield Symptom("fabric-speed", rail=rail)
    if rail.mtu < groups.MTU:
        yield Symptom("fabric-mtu", rail=rail)
    if rail.ipv4 is None:
        yield Symptom("fabric-no-address", rail=rail)
    elif rail.rdma is not None:
        address = rail.ipv4.partition("/")[0]
        kinds = [gid.type for gid in rail.rdma.gids if gid.address == address]
        if "RoCE v2" not in kinds:
            names = ", ".join(kinds) or "none"
            yield Symptom("fabric-no-gid", rail=rail, address=address, kinds=names)


@check("fabric-one-subnet", "fabric-address-twice")
def _addresses(fabric: groups.Fabric) -> Iterator[Symptom]:
    owners: dict[str, list[tuple[str, str]]] = {}
    for host, rails in fabric.used.items():
        at = [(rail, ip_interface(rail.ipv4)) for rail in rails if rail.ipv4]
        for (rail, first), (twin, second) in combinations(at, 2):
            if first.network.overlaps(second.network):
                yield Symptom(host=host, rail=rail, first=first, twin=twin, second=second)
        for rail, address in at:
            owners.setdefault(str(address.ip), []).append((host, rail.name))
    for address_twice, ends in owners.items():
        if len(ends) > 1:
            names = " and ".join(f"{host} {name}" for host, name in ends)
            yield Symptom(
                "fabric-address-twice", host=ends[0][0], address=address_twice, names=names
            )


@check("fabric-wrong-port")
def _cage(fabric: groups.Fabric) -> Iterator[Symptom]:
    ring = fabric.shape == "ring"
    ends = set()
    for cable in fabric.cables:
        same = cable.rail.cage == cable.other_rail.cage
        end = (cable.host, cable.rail.cage, cable.other, cable.other_rail.cage)
        if same is ring and end not in ends and fabric.shape != "switch":
            ends.add(end)
            yield Symptom("fabric-wrong-port", "" if ring else "pair", host=cable.host, cable=cable)


@check("fabric-other-host")
def _other(fabric: groups.Fabric) -> Iterator[Symptom]:
    for host, macs in cabling.unknown_neighbours(fabric.states).items():
        if macs and not any(host in (cable.host, cable.other) for cable in fabric.cables):
            others = " or ".join(name for name in fabric.states if name != host)
            yield Symptom(host=host, macs=", ".join(macs), others=others)


@check("fabric-ring-open")
def _apart(fabric: groups.Fabric) -> Iterator[Symptom]:
    if fabric.shape != "ring" or not fabric.cables:
        return
    reached: dict[str, set[str]] = {host: set() for host in fabric.states}
    for cable in fabric.cables:
        reached[cable.host].add(cable.other)
        reached[cable.other].add(cable.host)
    for host, others in reached.items():
        if len(others) < 2:
            yield Symptom(host=host, others=", ".join(sorted(others)) or "nobody")


@each(groups.cables_of, "fabric-subnets-differ", "fabric-mtus-differ")
def _cable(cable: cabling.Cable) -> Iterator[Symptom]:
    if cable.rail.ipv4 and cable.other_rail.ipv4:
        own, other = ip_interface(cable.rail.ipv4), ip_interface(cable.other_rail.ipv4)
        if own.network != other.network:
            yield Symptom(cable=cable, own=own, address=other)
    if cable.rail.mtu != cable.other_rail.mtu:
        yield Symptom("fabric-mtus-differ", cable=cable)


@check("fabric-drivers-differ", "fabric-images-differ", "fabric-kernels-differ")
def _differing(fabric: groups.Fabric) -> Iterator[Symptom]:
    for subject in ("driver", "image", "kernel"):
        values = {host: getattr(state, subject) for host, state in fabric.states.items()}
        values = {host: value for host, value in values.items() if value}
        if len(set(values.values())) > 1:
            each = ", ".join(f"{host} {value}" for host, value in values.items())
            yield Symptom(f"fabric-{subject}s-differ", observed=f"{subject}: {each}")

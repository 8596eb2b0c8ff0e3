"""What is wrong with one host's part of the fabric."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_interface
from itertools import combinations

from sparkwright.checks.fabric.check import EUGR, MTU, NVIDIA, SPEED, Check, Fabric, Symptom
from sparkwright.findings.finding import Severity
from sparkwright.host.fabric import Rail


def _used(fabric: Fabric) -> Iterator[tuple[str, Rail]]:
    for host, rails in fabric.used.items():
        yield from ((host, rail) for rail in rails)


def _none(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if not state.rails:
            yield Symptom(host, "no network device of a ConnectX", "four, two of each port")


def _down(fabric: Fabric) -> Iterator[Symptom]:
    needed = 2 if fabric.shape == "ring" else 1
    for host, state in fabric.states.items():
        up = {rail.cage for rail in state.rails if rail.carrier}
        if state.rails and len(up) < needed:
            there = f"port {min(up)} alone has a link" if up else "no port has a link"
            yield Symptom(host, there, "both ports" if needed == 2 else "one port")


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
                host, f"port {cage}: {up[0].name} is up, {name} is not", "both twins up",
                remedy=f"sudo ip link set {name} up" if others else None,
            )  # fmt: skip


def _speed(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.speed is not None and rail.speed < SPEED:
            yield Symptom(
                host, f"{rail.name}: {rail.speed} Mb/s", f"{SPEED} Mb/s",
                remedy=f"sudo ethtool {rail.name} must say {SPEED}Mb/s: set the switch's port to "
                "200G without autonegotiation, or take another cable",
            )  # fmt: skip


def _mtu(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.mtu < MTU:
            yield Symptom(
                host, f"{rail.name}: MTU {rail.mtu}", f"MTU {MTU} on every rail and the switch",
                remedy=f"sudo ip link set {rail.name} mtu {MTU}; for good: mtu: {MTU} in netplan, "
                "or fabric_addresses",
            )  # fmt: skip


def _address(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.ipv4 is None:
            yield Symptom(host, f"{rail.name}: no IPv4 address", "one, in a subnet of its own")


def _one_subnet(fabric: Fabric) -> Iterator[Symptom]:
    for host, rails in fabric.used.items():
        at = [(rail, ip_interface(rail.ipv4)) for rail in rails if rail.ipv4]
        for (one, first), (two, second) in combinations(at, 2):
            if first.network.overlaps(second.network):
                yield Symptom(
                    host, f"{one.name} {first}, {two.name} {second}", "a subnet for each of them"
                )


def _rdma(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        for rail in state.rails:
            if not rail.carrier:
                continue
            if rail.rdma is None:
                yield Symptom(
                    host, f"{rail.name}: no RDMA device", "one, ACTIVE",
                    remedy="sudo modprobe mlx5_ib; ibdev2netdev shows it",
                )  # fmt: skip
            elif rail.rdma.state != "ACTIVE":
                state_of = rail.rdma.state or "no state"
                yield Symptom(host, f"{rail.rdma.name} ({rail.name}): {state_of}", "ACTIVE")


def _gid(fabric: Fabric) -> Iterator[Symptom]:
    for host, rail in _used(fabric):
        if rail.ipv4 is None or rail.rdma is None:
            continue
        address = rail.ipv4.partition("/")[0]
        kinds = [gid.type for gid in rail.rdma.gids if gid.address == address]
        if "RoCE v2" not in kinds:
            seen = ", ".join(kinds) or "none"
            yield Symptom(
                host, f"{rail.rdma.name}: GIDs of {address}: {seen}", "a RoCE v2 GID",
                remedy=f"sudo ip link set {rail.name} down, then up; show_gids lists them",
            )  # fmt: skip


def _cma(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        if state.rails and state.cma_total == 0:
            yield Symptom(host, f"CmaTotal 0 kB, kernel {state.kernel}", "CmaTotal above 0")


def _nccl(fabric: Fabric) -> Iterator[Symptom]:
    for host, state in fabric.states.items():
        for loaded in state.nccl:
            yield Symptom(host, f"one process has loaded {' and '.join(loaded)}", "one NCCL")


CHECKS = (
    Check(
        "fabric-no-connectx", Severity.ERROR,
        "the host has no ConnectX, or its driver (mlx5_core) is not loaded",
        "lspci -d 15b3: shows the card; sudo modprobe mlx5_core", NVIDIA, _none,
    ),
    Check(
        "fabric-link-down", Severity.ERROR,
        "no cable, one that is not pushed in, or a host at its other end that is off",
        "plug the QSFP cable in; a pair and a switch need one port of each host, a ring both",
        NVIDIA, _down,
    ),
    Check(
        "fabric-twin-down", Severity.ERROR,
        "each port is two devices on two PCIe links of 100 Gb/s: with one of them half the "
        "bandwidth is gone, and NCCL that counts on both hangs at its start",
        "set the link up; ibdev2netdev shows all four", NVIDIA, _twin,
    ),
    Check(
        "fabric-speed", Severity.WARNING,
        "autonegotiation has settled on less: often 100G on a switch, or a cable for 100G",
        "ethtool must say 200000Mb/s", f"{NVIDIA}; {EUGR}", _speed,
    ),
    Check(
        "fabric-mtu", Severity.ERROR,
        "packets are smaller than the other side's, or are lost: IBV_WC_RETRY_EXC_ERR(12); a "
        "restart of the firmware has set one device back to 1500 before",
        f"MTU {MTU} on every rail", "tonyd2wild/DeepSeek-v4-Flash-Vision-Exp-DSpark-1M-NVFP4-KV-"
        "2x-DGX-Spark#38; " + EUGR, _mtu,
    ),
    Check(
        "fabric-no-address", Severity.ERROR,
        "RoCE v2 goes by IPv4 here: without an address the device has no GID that is of use",
        'fabric_addresses = "pair" in group_data/all.py writes them, or netplan by hand', NVIDIA,
        _address,
    ),
    Check(
        "fabric-one-subnet", Severity.ERROR,
        "the kernel then answers for both twins by one of them: half the bandwidth, or a hang at "
        "NCCL's start",
        "give each twin a subnet of its own, the same at both ends", f"{NVIDIA}; {EUGR}",
        _one_subnet,
    ),
    Check(
        "fabric-rdma-down", Severity.ERROR,
        "NCCL over RoCE needs the RDMA device of each port",
        "the cable and the port at its other end; ibstat shows the state", NVIDIA, _rdma,
    ),
    Check(
        "fabric-no-gid", Severity.ERROR,
        "NCCL asks for a RoCE v2 GID with an IPv4 address (NCCL_IB_ADDR_FAMILY=AF_INET), and a "
        "pinned NCCL_IB_GID_INDEX only hides that: it differs between hosts",
        "show_gids lists them", "MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#95, #125",
        _gid,
    ),
    Check(
        "fabric-cma", Severity.ERROR,
        "kernel 7.0.0-1019 keeps no contiguous memory: ibv_reg_mr fails with ENOMEM",
        "boot kernel 6.17.0-1031 or 6.17.0-1032", f"{EUGR}#392", _cma,
    ),
    Check(
        "fabric-two-nccl", Severity.ERROR,
        "pip's NCCL and the system's libnccl2 in one process: it hangs after 20 to 26 minutes of "
        "load",
        "an image with one of them: apt-get remove libnccl2 libnccl-dev in its build",
        "vllm-project/vllm#42354, #41725", _nccl,
    ),
)  # fmt: skip

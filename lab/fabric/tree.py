"""FAKE: contents of /sys and /proc and output of tools for a ConnectX-7, written below a
directory.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface
from pathlib import Path

#: Network device -> RDMA device, by cage and twin, as on every Spark.
DEVICES = {
    (0, 0): ("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0"),
    (0, 1): ("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0"),
    (1, 0): ("enp1s0f1np1", "rocep1s0f1", "0000:01:00.1"),
    (1, 1): ("enP2p1s0f1np1", "roceP2p1s0f1", "0002:01:00.1"),
}
MANAGEMENT = "enP7s7"


@dataclass
class Port:
    """A network device; ``address`` with its prefix length. ``sees`` lists the MACs at the other
    end of the cable.

    Attributes:
        roce: whether the device has a RoCE v2 GID with its IPv4 address.
    """

    up: bool = False
    address: str = ""
    speed: int = 200000
    mtu: int = 9000
    active: bool = True
    roce: bool = True
    sees: Sequence[str] = ()


@dataclass
class Spark:
    """A host's ConnectX, by cage and twin; ports without an entry are down."""

    number: int
    ports: dict[tuple[int, int], Port] = field(default_factory=dict)
    kernel: str = "6.17.0-1031-nvidia"
    cma_kib: tuple[int, int] = (65536, 60000)  # total and free
    driver: str = "580.95.05"

    def mac(self, cage: int, twin: int) -> str:
        """A device's MAC address."""
        return f"4c:bb:47:00:{self.number:02x}:{cage * 2 + twin:02x}"

    @property
    def address(self) -> str:
        """Address of the host's management interface."""
        return f"192.168.1.{20 + self.number}"


def write(spark: Spark, root: Path) -> None:
    """Write the host's /sys and /proc below a root, and the tools below ``root/bin``."""
    for position, named in DEVICES.items():
        port = spark.ports.get(position, Port())
        _network(root, spark, position, port, named)
        _rdma(root, port, named)
    texts = {
        "proc/meminfo": "CmaTotal: {} kB\nCmaFree: {} kB\n".format(*spark.cma_kib),
        "proc/sys/kernel/osrelease": f"{spark.kernel}\n",
        "sys/module/nvidia/version": f"{spark.driver}\n",
    }
    for name, text in texts.items():
        _write(root / name, text)
    tools(spark, root / "bin")


def _network(
    root: Path, spark: Spark, position: tuple[int, int], port: Port, named: tuple[str, str, str]
) -> None:
    name, _, pci = named
    at = root / "sys/class/net" / name
    device = root / "sys/devices/pci" / pci
    driver = root / "sys/bus/pci/drivers/mlx5_core"
    for folder in (at, device, driver):
        folder.mkdir(parents=True, exist_ok=True)
    (at / "device").symlink_to(device)
    (device / "driver").symlink_to(driver)
    for key, text in {
        "address": spark.mac(*position),
        "mtu": str(port.mtu),
        "carrier": str(int(port.up)),
        # The kernel reports -1 as the speed of a port without a link.
        "speed": str(port.speed if port.up else -1),
    }.items():
        _write(at / key, f"{text}\n")


def _rdma(root: Path, port: Port, named: tuple[str, str, str]) -> None:
    name, hca, _ = named
    at = root / "sys/class/infiniband" / hca / "ports/1"
    active = port.up and port.active
    _write(at / "state", "4: ACTIVE\n" if active else "1: DOWN\n")
    _write(at / "rate", "200 Gb/sec (4X HDR)\n" if active else "40 Gb/sec (4X QDR)\n")
    gids = []
    if port.up:
        gids = [("fe80:0000:0000:0000:4ebb:47ff:fe00:0001", "IB/RoCE v1"),
                ("fe80:0000:0000:0000:4ebb:47ff:fe00:0001", "RoCE v2")]  # fmt: skip
        if port.address:
            packed = ip_interface(port.address).packed
            mapped = f"0000:0000:0000:0000:0000:ffff:{packed[:2].hex()}:{packed[2:].hex()}"
            gids += [(mapped, "IB/RoCE v1"), *([(mapped, "RoCE v2")] if port.roce else [])]
    for index, (gid, kind) in enumerate(gids):
        _write(at / f"gids/{index}", f"{gid}\n")
        _write(at / f"gid_attrs/types/{index}", f"{kind}\n")
        _write(at / f"gid_attrs/ndevs/{index}", f"{name}\n")
    _write(at / f"gids/{len(gids)}", "0000:0000:0000:0000:0000:0000:0000:0000\n")


def tools(spark: Spark, folder: Path) -> None:
    """Write a FAKE ip, whose output equals the output of the real command."""
    addresses = [{"ifname": MANAGEMENT, "addr_info": [_info(f"{spark.address}/24")]}]
    neighbours = []
    for position, (name, _, _) in DEVICES.items():
        port = spark.ports.get(position, Port())
        infos = [_info(port.address)] if port.address else []
        addresses.append({"ifname": name, "addr_info": infos})
        neighbours += [
            {"dst": f"fe80::{number}", "dev": name, "lladdr": mac, "state": ["REACHABLE"]}
            for number, mac in enumerate(port.sees, 1)
        ]
    routes = [{"dst": "default", "gateway": "192.168.1.1", "dev": MANAGEMENT}]
    answers = "\n".join(
        f"*{word}*) echo '{json.dumps(text)}';;"
        for word, text in (("addr", addresses), ("neigh", neighbours), ("route", routes))
    )
    _write(folder / "ip", f'#!/bin/sh\n# FAKE\ncase "$*" in\n{answers}\nesac\n', 0o755)


def _info(address: str) -> dict[str, object]:
    at = ip_interface(address)
    return {
        "family": f"inet{'6' if at.version == 6 else ''}", "local": str(at.ip),
        "prefixlen": at.network.prefixlen, "scope": "global",
    }  # fmt: skip


def _write(folder: Path, text: str, mode: int = 0o644) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text(text)
    folder.chmod(mode)

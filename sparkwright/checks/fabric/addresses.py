"""Static addresses of a host's rails, by netplan: what is to be, and what is in the way.

The shape of the file is the one that eugr/spark-vllm-docker and sparkrun write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_interface

from sparkwright.config.fabric import FabricAddresses
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.fabric import NETPLAN, FabricState, Rail
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.ranks.collective import used_rails

_FIRST = 11
_SOURCE = "NVIDIA/dgx-spark-playbooks, connect-two-sparks and multi-sparks-through-switch"


@dataclass(frozen=True)
class Address:
    """A rail's address, with its prefix length, and those of the hosts at its other end."""

    rail: Rail
    address: str
    peers: tuple[str, ...]


def addresses_of(wanted: FabricAddresses, host: str, state: FabricState) -> tuple[Address, ...]:
    """What each rail of a host gets; nothing where no cable is in.

    In a pair and at a switch, the port that has a cable is found. In a ring, cable ``n`` leads from
    port 0 of host ``n`` to port 1 of the next one.
    """
    place, number = wanted.hosts.index(host), len(wanted.hosts)
    found = []
    for rail in used_rails(state, wanted.shape):
        if wanted.shape == "ring":
            cable = (place - rail.cage) % number
            network = wanted.networks[2 * cable + rail.twin]
            others = [(place + 1 if rail.cage == 0 else place - 1) % number]
        else:
            network = wanted.networks[rail.twin]
            others = [one for one in range(number) if one != place]
        at = network.network_address + _FIRST
        peers = tuple(str(at + one) for one in others)
        found.append(Address(rail, f"{at + place}/{network.prefixlen}", peers))
    return tuple(found)


def netplan(wanted: FabricAddresses, given: tuple[Address, ...]) -> str:
    """The text of the file."""
    lines = [
        "# Written by `sparkwright fabric addresses`; `sparkwright remove` takes it away.",
        "network:",
        "  version: 2",
        "  ethernets:",
    ]
    for one in given:
        lines += [
            f"    {one.rail.name}:",
            "      dhcp4: false",
            "      dhcp6: false",
            "      link-local: []",
            f"      mtu: {wanted.mtu}",
            f"      addresses: [{one.address}]",
        ]
    return "\n".join(lines) + "\n"


def pings(wanted: FabricAddresses, given: tuple[Address, ...]) -> tuple[Ping, ...]:
    """What proves them: every peer answers on every rail, with packets that fill the MTU."""
    size = wanted.mtu - 28
    return tuple(Ping(peer, one.rail.name, size) for one in given for peer in one.peers)


def pending(wanted: FabricAddresses, given: tuple[Address, ...], state: FabricState) -> list[str]:
    """What will be done, in words; nothing where everything is so already."""
    live = all(one.address in one.rail.addresses and one.rail.mtu == wanted.mtu for one in given)
    if live and state.netplan == netplan(wanted, given):
        return []
    each = ", ".join(f"{one.rail.name} {one.address}" for one in given)
    return [f"write {NETPLAN} and apply it, MTU {wanted.mtu}: {each}"]


def problems(wanted: FabricAddresses, host: str, state: FabricState, came: str | None,
             present: frozenset[str]) -> Iterator[Finding]:  # fmt: skip
    """Why a host's addresses are left as they are.

    Args:
        came: the address at which the controller reached it.
        present: the hosts that take part in this run.
    """
    if missing := [one for one in wanted.hosts if one not in present]:
        yield _error(
            host, f"{', '.join(missing)}: not in this run", "every host of fabric_addresses",
            "each address is proved by its peers", "run it without --limit, with all of them on",
        )  # fmt: skip
    if "netplan" not in state.tools:
        yield _error(
            host, "netplan is not installed", "netplan", "it is what writes these addresses",
            "sudo apt install netplan.io; or set them by hand (docs/fabric.md)",
        )  # fmt: skip
    rails = used_rails(state, wanted.shape)
    needed = 4 if wanted.shape == "ring" else 2
    if len(rails) < needed:
        yield _error(
            host, f"{len(rails)} network devices of the ConnectX are up with RDMA: "
            f"{', '.join(one.name for one in rails) or 'none'}", f"{needed}",
            "a cable that is not in, or a twin that is down", "sudo ip link set DEVICE up; ibstat",
        )  # fmt: skip
    names = {one.name for one in rails}
    for device, file in state.configured.items():
        if device in names:
            yield _error(
                host, f"{file} configures {device}", "one file for each device",
                "netplan merges both, and nobody knows which address counts",
                f"take {device} out of {file}, or move the file away",
            )  # fmt: skip
    yield from _ways_in(wanted, host, state, came, names)


def _ways_in(
    wanted: FabricAddresses, host: str, state: FabricState, came: str | None, rails: set[str]
) -> Iterator[Finding]:
    """What of the host's other networks is in the way."""
    for name, every in state.interfaces.items():
        for at in every:
            one = ip_interface(at)
            if name in rails and (str(one.ip) == came or name == state.management):
                yield _error(
                    host, f"it is managed over {name} ({one.ip})", "RJ45 or Wi-Fi",
                    "the connection would be lost while addresses change",
                    "give ssh_hostname its address in the LAN",
                )  # fmt: skip
            elif name not in rails and any(
                one.version == 4 and one.network.overlaps(network) for network in wanted.networks
            ):
                yield _error(
                    host, f"{name} is in {one.network}", "networks that nothing else uses",
                    "the host would send to the wrong interface",
                    "another network in fabric_addresses",
                )  # fmt: skip


def _error(host: str, observed: str, expected: str, reason: str, remedy: str) -> Finding:
    return Finding(
        "fabric-addresses", Severity.ERROR, Subject(host), observed, expected, reason, remedy,
        _SOURCE,
    )  # fmt: skip

"""Static addresses of a host's rails in netplan: the desired file, and obstacles to a change.

The netplan file has the same shape as the files of eugr/spark-vllm-docker and sparkrun.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path

from sparkwright.config.fabric import FabricAddresses
from sparkwright.config.templates import template
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.host.fabric import NETPLAN, FabricState, Rail
from sparkwright.host.lib.icmp import Ping
from sparkwright.host.ranks.collective import used_rails

_FIRST = 11


@dataclass(frozen=True)
class Address:
    """A rail's address, with its prefix length, and the addresses of the hosts at its other end."""

    rail: Rail
    address: str
    peers: tuple[str, ...]


def addresses_of(wanted: FabricAddresses, host: str, state: FabricState) -> tuple[Address, ...]:
    """Addresses of a host's cabled rails.

    In a pair and at a switch, the cabled port is detected. In a ring, cable ``n`` leads from port 0
    of host ``n`` to port 1 of the next host.
    """
    position, number = wanted.hosts.index(host), len(wanted.hosts)
    result = []
    for rail in used_rails(state, wanted.shape):
        if wanted.shape == "ring":
            cable = (position - rail.cage) % number
            network = wanted.networks[2 * cable + rail.twin]
            others = [(position + 1 if rail.cage == 0 else position - 1) % number]
        else:
            network = wanted.networks[rail.twin]
            others = [item for item in range(number) if item != position]
        at = network.network_address + _FIRST
        peers = tuple(str(at + other) for other in others)
        result.append(Address(rail, f"{at + position}/{network.prefixlen}", peers))
    return tuple(result)


def netplan(wanted: FabricAddresses, given: tuple[Address, ...]) -> str:
    """Text of the netplan file."""
    return template("fabric/netplan.yaml.j2").render(wanted=wanted, given=given)


def pings(wanted: FabricAddresses, given: tuple[Address, ...]) -> tuple[Ping, ...]:
    """Pings that test the addresses: every peer, on every rail, with packets that fill the MTU."""
    size = wanted.mtu - 28
    return tuple(Ping(peer, item.rail.name, size) for item in given for peer in item.peers)


def pending(wanted: FabricAddresses, given: tuple[Address, ...], state: FabricState) -> list[str]:
    """Pending changes, as text; empty if everything is already applied."""
    live = all(
        item.address in item.rail.addresses and item.rail.mtu == wanted.mtu for item in given
    )
    if live and state.netplan == netplan(wanted, given):
        return []
    each = ", ".join(f"{item.rail.name} {item.address}" for item in given)
    return [f"write {NETPLAN} and apply it, MTU {wanted.mtu}: {each}"]


def problems(wanted: FabricAddresses, host: str, state: FabricState, came: str | None,
             present: frozenset[str]) -> list[Finding]:  # fmt: skip
    """Return the problems that prevent a change of a host's addresses.

    Args:
        came: the address at which the controller reached the host.
        present: the hosts that take part in this run.
    """
    (check,) = load(Path(__file__).with_name("addresses.yaml")).values()
    symptoms = _obstacles(wanted, state, came, present)
    return [check.finding(symptom).on(host) for symptom in symptoms]


def _obstacles(
    wanted: FabricAddresses, state: FabricState, came: str | None, present: frozenset[str]
) -> Iterator[Symptom]:
    if missing := [name for name in wanted.hosts if name not in present]:
        yield Symptom("", "absent", names=", ".join(missing))
    if "netplan" not in state.tools:
        yield Symptom("", "no-netplan")
    rails = used_rails(state, wanted.shape)
    names, needed = [rail.name for rail in rails], 4 if wanted.shape == "ring" else 2
    if len(rails) < needed:
        up = ", ".join(names) or "none"
        yield Symptom("", "down", count=len(rails), names=up, needed=needed)
    for device, file in state.configured.items():
        if device in names:
            yield Symptom("", "configured", device=device, file=file)
    for name, every in state.interfaces.items():
        for at in map(ip_interface, every):
            if name in names and (str(at.ip) == came or name == state.management):
                yield Symptom("", "managed", name=name, address=at.ip)
            elif (
                name not in names
                and at.version == 4
                and any(map(at.network.overlaps, wanted.networks))
            ):
                yield Symptom("", "overlaps", name=name, network=at.network)

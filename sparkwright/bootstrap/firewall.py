"""Ports that a host's services need, opened in the host's active firewall."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface

from sparkwright.config.settings import is_loopback
from sparkwright.host.bootstrap.inspection import BootstrapState, Firewall
from sparkwright.plan.plan import HostPlan


@dataclass(frozen=True)
class Opening:
    """A firewall rule: its description, and the commands that add and remove it."""

    summary: str
    open: tuple[tuple[str, ...], ...]
    close: tuple[tuple[str, ...], ...]


def ports_of(plan: HostPlan) -> tuple[int, ...]:
    """Return the TCP ports that clients and peers reach, including the address of all models."""
    client_ports = [service.port for service in plan.services if not is_loopback(service.bind)]
    if address := plan.settings.address:
        client_ports += [address.port, *([address.open_webui.port] if address.open_webui else [])]
    client_ports += [plan.settings.peer_port] if plan.settings.peer_sharing else []
    return tuple(dict.fromkeys(client_ports))


def network_of(state: BootstrapState, addresses: Sequence[str]) -> str | None:
    """Return the network from which other machines reach the host; None if unknown."""
    own = {ip_address(address) for address in addresses}
    for network in state.networks:
        try:
            interface = ip_interface(network)
        except ValueError:
            continue
        if interface.ip in own:
            return str(interface.network)
    return None


def openings(firewall: Firewall, network: str, ports: Sequence[int]) -> list[Opening]:
    """Return the rules that the firewall lacks."""
    make = _ufw if firewall.name == "ufw" else _firewalld
    return [item for port in ports if (item := make(firewall.rules, network, port))]


def _ufw(rules: Sequence[str], network: str, port: int) -> Opening | None:
    # An example of a rule: ### tuple ### allow tcp 8000 0.0.0.0/0 any 192.168.1.0/24 in
    for rule in rules:
        parts = rule.split()
        if parts[3:6] == ["allow", "tcp", str(port)] and parts[8:9] == [network]:
            return None
    rule_words = ("allow", "proto", "tcp", "from", network, "to", "any", "port", str(port))
    return Opening(
        f"open port {port} to {network} (ufw)", (("ufw", *rule_words),),
        (("ufw", "delete", *rule_words),),
    )  # fmt: skip


def _firewalld(rules: Sequence[str], network: str, port: int) -> Opening | None:
    family = "ipv6" if ":" in network else "ipv4"
    port_of = f'port port="{port}" protocol="tcp"'
    rule = f'rule family="{family}" source address="{network}" {port_of} accept'
    if rule in rules:
        return None
    load = ("firewall-cmd", "--reload")
    return Opening(
        f"open port {port} to {network} (firewalld)",
        (("firewall-cmd", "--permanent", f"--add-rich-rule={rule}"), load),
        (("firewall-cmd", "--permanent", f"--remove-rich-rule={rule}"), load),
    )

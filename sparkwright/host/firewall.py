"""Reads the firewall of a host whose services nobody else reaches. Runs there as root."""

from __future__ import annotations

import ipaddress
import re

from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class Firewall:
    """Each program's own listing; None where it is not there or not active.

    Attributes:
        ufw: of ``ufw status verbose``.
        firewalld: of ``firewall-cmd --list-all-zones``.
        nft: of ``nft list ruleset``.
        interface, network: interface and network of the address: ``eth0``, ``192.168.1.0/24``.
    """

    ufw: str | None = None
    firewalld: str | None = None
    nft: str | None = None
    interface: str | None = None
    network: str | None = None


#: Bytes of one listing; Docker's and Kubernetes' rules can be many.
_MOST = 1 << 20


def listing(*arguments: str) -> str | None:
    """Run a command and return its listing; None if it fails."""
    outcome = run(*arguments, timeout=20)
    return outcome.out[:_MOST] if outcome.ok else None


def network_of(address: str) -> tuple[str | None, str | None]:
    """Interface and network of an address of this host."""
    # 2: eth0    inet 192.168.1.11/24 brd 192.168.1.255 scope global eth0\ ...
    text = listing("ip", "-o", "addr", "show", "to", address) or ""
    match = re.search(r"^\d+: (\S+)\s+inet6? (\S+/\d+)", text)
    if match is None:
        return None, None
    return match[1], str(ipaddress.ip_interface(match[2]).network)


def main(request: str) -> Firewall:
    """Read what is there; the request is the host's address, as others were to reach it."""
    ufw = listing("ufw", "status", "verbose")
    interface, network = network_of(request)
    return Firewall(
        ufw=ufw if ufw and "Status: active" in ufw else None,
        firewalld=listing("firewall-cmd", "--list-all-zones"),
        nft=listing("nft", "list", "ruleset"),
        interface=interface,
        network=network,
    )

"""What a host's firewall is asked for, and what it says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FirewallRequest:
    """The host's address, as others were to reach it."""

    address: str


@dataclass(frozen=True)
class Firewall:
    """Each program's own listing; None where it is not there or not active.

    Attributes:
        ufw: of ``ufw status verbose``.
        firewalld: of ``firewall-cmd --list-all-zones``.
        nft: of ``nft list ruleset``.
        iptables: whether there is a command iptables.
        interface, network: those of the address: ``eth0``, ``192.168.1.0/24``.
    """

    ufw: str | None = None
    firewalld: str | None = None
    nft: str | None = None
    iptables: bool = False
    interface: str | None = None
    network: str | None = None

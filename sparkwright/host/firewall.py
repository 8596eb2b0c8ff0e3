"""The firewall of a host: its listing, and chains of iptables that close a service's ports.

As a program it reads the firewall of a host whose services nobody else reaches. Runs there as root.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import shutil

from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import dataclass


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


#: Bytes of one listing; Docker's and Kubernetes' rules can be many.
_MOST = 1 << 20
#: Arguments of iptables: a match, or a rule of a chain.
Rule = tuple[str, ...]
PROGRAMS = ("iptables", "ip6tables")
DROP: Rule = ("-j", "DROP")


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
        iptables=shutil.which("iptables") is not None,
        interface=interface,
        network=network,
    )


def owners(*uids: int) -> list[Rule]:
    """Rules of a chain behind OUTPUT: only processes of these users begin connections.

    Packets of a socket without an owner, such as the kernel's own, are dropped, too.
    """
    allowed = (("-m", "owner", "--uid-owner", str(uid), "-j", "RETURN") for uid in uids)
    return [*allowed, DROP]


def close(program: str, service: str, hook: str, matches: list[Rule], rules: list[Rule]) -> None:
    """Make a chain of a service's own, and send packets of a built-in chain through it.

    Args:
        program: iptables or ip6tables.
        hook: the built-in chain, such as INPUT.
        matches: packets of the built-in chain that the service's chain decides about.
        rules: of the service's chain, in their order.

    Raises:
        SystemExit: a rule can't be made.
    """
    chain = f"{_prefix(service)}-{hook[:3]}"
    made: list[Rule] = [("-N", chain), *(("-A", chain, *rule) for rule in rules)]
    made += [("-I", hook, *match, "-j", chain) for match in matches]
    for arguments in made:
        outcome = run(program, "-w", *arguments, timeout=20)
        if not outcome.ok:
            raise SystemExit(
                f"the ports of {service} can't be closed to others: {program}: {outcome.message}"
            )


def open_again(service: str) -> None:
    """Remove all chains of a service, also those that an earlier release made."""
    for program in PROGRAMS:
        lines = [line.split() for line in (listing(program, "-w", "-S") or "").splitlines()]
        listed = [line for line in lines if len(line) > 1]
        for action, chain, *rule in listed:
            if action == "-A" and rule and rule[-1].startswith(_prefix(service)):
                run(program, "-w", "-D", chain, *rule, timeout=20)
        for _, chain, *_ in listed:
            if chain.startswith(_prefix(service)):
                run(program, "-w", "-F", chain, timeout=20)
                run(program, "-w", "-X", chain, timeout=20)


def _prefix(service: str) -> str:
    """How a service's chains begin: iptables takes 28 letters for a name."""
    return f"SPARKWRIGHT-{hashlib.sha256(service.encode()).hexdigest()[:12].upper()}"

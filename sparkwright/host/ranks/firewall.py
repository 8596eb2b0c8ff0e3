"""Closes the ports of a rank's engine to all but the other ranks, by the kernel's own rules.

vLLM's engines speak to each other without any key, and load what they are sent: the head's port is
open on every address of its host, and each rank has some fifteen more, at numbers of the kernel's
choice. iptables is there wherever Docker is. The rules are a chain of the service's own, made
before its engine starts, and taken away after it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sparkwright.host.lib import documents
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.ranks import RankConfig

#: Where the kernel takes a port for a socket that asks for none in particular.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_IPV6 = Path("/proc/net/if_inet6")


def chain_of(service: str) -> str:
    """The name of a service's chain: iptables takes 28 letters."""
    return f"SPARKWRIGHT-{hashlib.sha256(service.encode()).hexdigest()[:12].upper()}"


def close(service: str, rank: RankConfig) -> None:
    """Make the rules; the engine is not started without them.

    Raises:
        SystemExit: they can't be made.
    """
    open_again(service)
    chain = chain_of(service)
    ours = [("-s", address, "-j", "RETURN") for address in rank.addresses]
    _rules("iptables", chain, [("-i", "lo", "-j", "RETURN"), *ours, ("-j", "DROP")], _jumps(rank))
    if _has_ipv6():
        _rules("ip6tables", chain, [("-i", "lo", "-j", "RETURN"), ("-j", "DROP")], [_ports(rank)])


def open_again(service: str) -> None:
    """Take the rules away, also those that an earlier plan of the cluster made."""
    chain = chain_of(service)
    for program in ("iptables", "ip6tables"):
        listed = run(program, "-w", "-S", "INPUT", timeout=20).out.splitlines()
        for rule in listed:
            parts = rule.split()
            if parts[:2] == ["-A", "INPUT"] and parts[-2:] == ["-j", chain]:
                run(program, "-w", "-D", *parts[1:], timeout=20)
        for action in ("-F", "-X"):
            run(program, "-w", action, chain, timeout=20)


def _has_ipv6() -> bool:
    """Whether anything but this host and its containers could come by IPv6."""
    lines = (documents.text(_IPV6) or "").splitlines()
    devices = {line.split()[-1] for line in lines}
    return any(not device.startswith(("lo", "docker", "veth", "br-")) for device in devices)


def _ports(rank: RankConfig) -> tuple[str, ...]:
    return ("-p", "tcp", "--dport", f"{rank.port}:{rank.port + 1}")


def _jumps(rank: RankConfig) -> list[tuple[str, ...]]:
    """Connections that the chain decides about: the head's ports at every address, and at the
    rank's own address all ports that an engine may choose; on a rail of the ranks' own, all."""
    begun = ("-d", rank.addresses[rank.number], "-p", "tcp", "--syn")
    if rank.shape is not None:
        return [_ports(rank), begun]
    first, last = (documents.text(_RANGE) or "32768 60999").split()
    return [_ports(rank), (*begun, "--dport", f"{first}:{last}")]


def _rules(
    program: str, chain: str, rules: list[tuple[str, ...]], jumps: list[tuple[str, ...]]
) -> None:
    made = [("-N", chain), *(("-A", chain, *rule) for rule in rules)]
    made += [("-I", "INPUT", *jump, "-j", chain) for jump in jumps]
    for arguments in made:
        done = run(program, "-w", *arguments, timeout=20)
        if not done.ok:
            raise SystemExit(f"the ranks' ports can't be closed to others: {program}: {done.said}")

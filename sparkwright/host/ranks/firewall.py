"""Closes the ports of a rank's engine to all but the other ranks and root, by rules of iptables.

vLLM's engines speak to each other without any key, and load what they are sent: the head's port is
open on every address of its host, and each rank has some fifteen more, at numbers of the kernel's
choice. iptables is there wherever Docker is. The rules are made before the engine starts, and
removed after it.
"""

from __future__ import annotations

from pathlib import Path

from sparkwright.host import firewall
from sparkwright.host.firewall import Rule
from sparkwright.host.lib import documents
from sparkwright.host.lib.ranks import RankConfig

#: Where the kernel takes a port for a socket that asks for none in particular.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_IPV6 = Path("/proc/net/if_inet6")
#: Interface lo: OUTPUT has judged these packets, and knows whose they are.
_LOCAL: Rule = ("-i", "lo", "-j", "RETURN")
#: Processes that connect to ranks: this program's, and the engine, which is root in its container.
_USERS = firewall.owners(0)


def close(service: str, rank: RankConfig) -> None:
    """Make the rules; the engine is not started without them.

    Raises:
        SystemExit: they can't be made.
    """
    firewall.open_again(service)
    gathering = ("-p", "tcp", "--syn", "--dport", f"{rank.port}:{rank.port + 1}")
    others = [("-s", address, "-j", "RETURN") for address in rank.addresses]
    begun = [_chosen(address) for address in rank.addresses]
    # On a rail of the ranks' own, neighbours have nothing to connect to at all.
    mine = _chosen(rank.addresses[rank.number], every=rank.shape is not None)
    firewall.close(
        "iptables", service, "INPUT", [gathering, mine], [_LOCAL, *others, firewall.DROP]
    )
    firewall.close("iptables", service, "OUTPUT", [gathering, *begun], _USERS)
    if documents.text(_IPV6):
        firewall.close("ip6tables", service, "INPUT", [gathering], [_LOCAL, firewall.DROP])
        firewall.close("ip6tables", service, "OUTPUT", [gathering], _USERS)


def _chosen(address: str, *, every: bool = False) -> Rule:
    """Connections to a port that an engine may choose at an address, or to every port."""
    begun = ("-d", address, "-p", "tcp", "--syn")
    first, last = (documents.text(_RANGE) or "32768 60999").split()
    return begun if every else (*begun, "--dport", f"{first}:{last}")

"""Which addresses of hosts are those of ConnectX-7 ports that they share a network by.

Weights and images between such hosts take that way, and the LAN where it does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from sparkwright.config.fabric import FabricAddresses
from sparkwright.host.fabric import NAME

#: Of networks that no setting names: everybody who publishes addresses of rails has them so.
_USUAL = 24


def addresses(own: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A host's IPv4 addresses on ports of a ConnectX, by interface as it says them itself."""
    return tuple(
        one
        for interface, every in sorted(own.items())
        if NAME.fullmatch(interface)
        for one in every
        if _is_private(one)
    )


def towards(
    mine: Mapping[str, tuple[str, ...]],
    theirs: Mapping[str, tuple[str, ...]],
    wanted: FabricAddresses | None,
) -> Iterator[str]:
    """The other host's addresses that are in a network of this one's rails, and nowhere else: a
    host may say anything of itself."""
    reached = [_network(one, wanted) for one in addresses(mine)]
    for one in addresses(theirs):
        if any(IPv4Address(one) in network for network in reached) and one not in addresses(mine):
            yield one


def _network(address: str, wanted: FabricAddresses | None) -> IPv4Network:
    at = IPv4Address(address)
    named = (one for one in (wanted.networks if wanted else ()) if at in one)
    return next(named, IPv4Network((int(at) >> 32 - _USUAL << 32 - _USUAL, _USUAL)))


def _is_private(address: str) -> bool:
    try:
        at = IPv4Address(address)
    except ValueError:
        return False
    return at.is_private and not (at.is_loopback or at.is_link_local)

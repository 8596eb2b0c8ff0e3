"""Addresses at which a host serves other hosts."""

import socket
from collections.abc import Mapping
from ipaddress import ip_address

#: Interfaces of Docker, virtual machines and VPNs, which do not lead to the hosts' LAN.
_VIRTUAL = (
    "lo", "docker", "br-", "veth", "virbr", "cni", "flannel", "tailscale", "wg", "tun", "zt",
)  # fmt: skip


def addresses(
    named: str | None, came: str | None, own: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return a host's IP addresses for other hosts, IPv4 first.

    The controller may use IPv6 (.local names often resolve to IPv6), and another host IPv4: all
    addresses of the controller's interface are served, but never the address of another interface.

    Args:
        named: the setting ``lan_address``, which takes precedence.
        came: the address at which the controller reached the host; None behind a jump host.
        own: interface -> the host's addresses on this interface.
    """
    if named:
        return _number(named)
    if came is None:
        return ()
    came = came.partition("%")[0]
    beside = next((every for every in own.values() if came in every), None)
    if beside is None and ip_address(came).is_link_local:
        # The interface is unknown, unless only one interface has addresses.
        real = [every for name, every in own.items() if not name.startswith(_VIRTUAL)]
        beside = real[0] if len(real) == 1 else ()
    result = dict.fromkeys((*filter(usable, beside or ()), *_number(came)))
    return tuple(sorted(result, key=lambda item: ":" in item))


def at(address: str, port: int) -> str:
    """An address with a port, as in a URL and in ListenStream=."""
    return f"[{address}]:{port}" if ip_address(address).version == 6 else f"{address}:{port}"


def usable(address: str) -> bool:
    """Return whether other hosts can use an address. The text comes from a host, which may report
    any text."""
    try:
        return not ip_address(address).is_link_local
    except ValueError:
        return False


def _number(named: str) -> tuple[str, ...]:
    """Resolve a name or address to an IP address for other hosts, preferably IPv4."""
    try:
        infos = socket.getaddrinfo(named, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the controller can't resolve the name
        return ()
    result = {str(info[4][0]) for info in infos if usable(str(info[4][0]))}
    return tuple(sorted(result, key=lambda item: (":" in item, item))[:1])

"""Addresses at which the fleet's address reaches the replicas: as seen from the host of the fleet's
address, not from the controller.

A name of the controller's ssh_config or of .local is not a name on another host: HAProxy would
start with a valid configuration, and never use the replica.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.lib.addresses import Reach, Reached
from sparkwright.proxy.haproxy import Proxies, Replica, is_address
from sparkwright.tls.names import ip_address

_SERVER = re.compile(r"^ +server (\S+) (?:\[([^\]]+)\]|([^:\s]+)):\d+ check", re.MULTILINE)


def wanted(proxies: Proxies | None, seen_from_here: Mapping[str, str]) -> tuple[Reach, ...]:
    """Return the connections that a host must try to the replicas of its pools.

    Args:
        seen_from_here: host -> the address at which the controller reached it.
    """
    result = {}
    for replica in replicas(proxies):
        addresses = dict.fromkeys(filter(None, (replica.address, seen_from_here.get(replica.name))))
        result[replica.name] = Reach(replica.name, tuple(addresses), replica.port)
    return tuple(result.values())


def settled(
    proxies: Proxies | None, reached: Mapping[str, Reached], config: str | None
) -> Proxies | None:
    """Return the proxies with the addresses at which their host reaches the replicas.

    Args:
        config: HAProxy's present configuration: a replica that is off for a while keeps its
            address.
    """
    if proxies is None:
        return None
    result = {name: six or other for name, six, other in _SERVER.findall(config or "")}
    before = {name: at for name, at in result.items() if is_address(at)}
    moved = tuple(
        replace(
            pool,
            replicas=tuple(_at(each, reached.get(each.name), before) for each in pool.replicas),
        )
        for pool in proxies.pools
    )
    return replace(proxies, pools=moved)


def _at(replica: Replica, seen: Reached | None, before: Mapping[str, str]) -> Replica:
    given = ip_address(replica.address)
    if given and not given.is_link_local:
        return replica  # the user has set this address
    if seen is None or seen.address is None:
        if address := before.get(replica.name):
            return replace(replica, address=address, dns=ip_address(address) is None)
        return replica
    if seen.dns and seen.written == replica.address:
        return replace(replica, dns=True)
    return replace(replica, address=seen.address) if ip_address(seen.address) else replica


def unreached(proxies: Proxies | None, reached: Mapping[str, Reached]) -> Iterator[Finding]:
    """Yield a warning for each replica that the address's host does not reach."""
    for name in dict.fromkeys(replica.name for replica in replicas(proxies)):
        seen = reached.get(name)
        if seen is not None and seen.address is None:
            yield Finding(
                "replica-unreachable", Severity.WARNING, Subject(),
                f"the host of the fleet's address does not reach {name}: {'; '.join(seen.tried)}",
                f"an address of {name} that answers on this host",
                "HAProxy sends the replica no request, and reports no error",
                f"set lan_address of {name} to an address that this host reaches, or check the "
                "network between the two hosts",
                "sparkwright",
            )  # fmt: skip


def replicas(proxies: Proxies | None) -> Iterator[Replica]:
    """Yield the replicas of all pools, on this host and on other hosts."""
    for pool in proxies.pools if proxies else ():
        yield from pool.replicas

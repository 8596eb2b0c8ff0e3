"""Observing a host with all that its part of the run needs, the way to its replicas included."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

from pyinfra.api.host import Host

from sparkwright.facts.observation import observe_anew
from sparkwright.host.observation import Observation
from sparkwright.operations.connections import addresses
from sparkwright.proxy import reachable
from sparkwright.run.state import HostRun


def look(host: Host, one: HostRun) -> Observation:
    """Observe a host; its load balancers then have addresses that it reaches.

    Raises:
        HostError: when it does not answer.
    """
    if one.planned_proxies is None or not any(reachable.replicas(one.planned_proxies)):
        return observe_anew(host, one.request)
    reach = reachable.wanted(one.planned_proxies, _seen_from_here(host))
    config = one.planned_proxies.config
    texts = tuple(dict.fromkeys((*one.request.texts, config)))
    seen = observe_anew(host, replace(one.request, reach=reach, texts=texts))
    one.reached(reachable.settled(one.planned_proxies, seen.reached, seen.texts.get(config)))
    return seen


def _seen_from_here(host: Host) -> dict[str, str]:
    """Where this machine reached each host of the run: not those behind a jump host."""
    found = {}
    for other in host.state.inventory:
        known = addresses(other)
        if known and not ip_address(known[1].partition("%")[0]).is_loopback:
            found[other.name] = known[1].partition("%")[0]
    return found

"""Observation and status of a host in a run; its services are those of the plan, or are read back
from the host where the plan is broken."""

from dataclasses import replace
from ipaddress import ip_address

from pyinfra.api.host import Host

from sparkwright.facts.answers import invalid
from sparkwright.facts.asking import ask
from sparkwright.facts.observation import observe_anew
from sparkwright.host import status
from sparkwright.host.observe import Observation
from sparkwright.host.service import Service, check_names, checked
from sparkwright.host.status import HostStatus, StatusRequest
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
    reach = reachable.wanted(one.planned_proxies, _reached_from_here(host))
    config = one.planned_proxies.config
    texts = tuple(dict.fromkeys((*one.request.texts, config)))
    seen = observe_anew(host, replace(one.request, reach=reach, texts=texts))
    one.reached(reachable.settled(one.planned_proxies, seen.reached, seen.texts.get(config)))
    return seen


def _reached_from_here(host: Host) -> dict[str, str]:
    """Where this machine reached each host of the run: not those behind a jump host."""
    direct = {}
    for other in host.state.inventory:
        known = addresses(other)
        if known and not ip_address(known[1].partition("%")[0]).is_loopback:
            direct[other.name] = known[1].partition("%")[0]
    return direct


def status_of(host: Host, one: HostRun, *, texts: bool) -> HostStatus:
    """Releases, state and history of the host's services. One remote execution.

    Raises:
        HostError: when the answer names what no service has.
    """
    root = one.settings.services_root
    ports = {each.name: (each.gate.address, each.gate.port) for each in one.services}
    answer = ask(host, status, StatusRequest(root, ports, texts), HostStatus, timeout=60)
    try:
        for name, seen in answer.services.items():
            for release in (*seen.releases, seen.current, seen.good):
                check_names(name, release or "none")
            for release, kept in seen.releases.items():
                if kept.service:
                    checked(kept.service, f"{root}/services/{name}", release)
    except ValueError as error:
        invalid("sparkwright-status", str(error))
    return answer


def services_of(one: HostRun, answer: HostStatus) -> dict[str, Service]:
    """The services of a host by name: planned, or without a plan those that its status names.

    A service whose record is damaged, or of another version of sparkwright, is left out.
    """
    if one.plan_known:
        return {service.name: service for service in one.services}
    return {
        name: kept.service
        for name, seen in answer.services.items()
        if (kept := seen.releases.get(seen.current or "")) and kept.service
    }


def unreadable(one: HostRun, answer: HostStatus) -> list[str]:
    """Services of a host without a plan whose record says nothing."""
    return sorted(answer.services.keys() - services_of(one, answer).keys())

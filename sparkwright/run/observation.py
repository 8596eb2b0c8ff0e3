"""Observation and status of a host in a run.

The services are the plan's, or, without a plan, are read back from the host.
"""

from dataclasses import replace
from ipaddress import ip_address

from pyinfra.api.host import Host

from sparkwright.facts import answers, observation
from sparkwright.facts.asking import addresses, ask
from sparkwright.host import observe, status
from sparkwright.host.service import Service, check_names, checked
from sparkwright.host.status import HostStatus, StatusRequest
from sparkwright.proxy import reachable
from sparkwright.run.state import HostRun


def look(host: Host, host_run: HostRun) -> observe.Observation:
    """Observe a host, and set the reachable addresses of replicas in the host's pools.

    Raises:
        HostError: the host does not answer.
    """
    if host_run.planned_proxies is None or not any(reachable.replicas(host_run.planned_proxies)):
        return observation.observe_anew(host, host_run.request)
    reach = reachable.wanted(host_run.planned_proxies, _reached_from_here(host))
    config = host_run.planned_proxies.config
    texts = tuple(dict.fromkeys((*host_run.request.texts, config)))
    seen = observation.observe_anew(host, replace(host_run.request, reach=reach, texts=texts))
    host_run.reached(
        reachable.settled(host_run.planned_proxies, seen.reached, seen.texts.get(config))
    )
    return seen


def _reached_from_here(host: Host) -> dict[str, str]:
    """Return the addresses at which this machine reached hosts, except hosts behind a jump host."""
    direct = {}
    for other in host.state.inventory:
        connection = addresses(other)
        if connection and not ip_address(connection[1].partition("%")[0]).is_loopback:
            direct[other.name] = connection[1].partition("%")[0]
    return direct


def status_of(host: Host, host_run: HostRun, *, texts: bool) -> HostStatus:
    """Return the releases, state and history of the host's services. One remote execution.

    Raises:
        HostError: the answer has an impossible value.
    """
    root = host_run.settings.services_root
    ports = {each.name: (each.gate.address, each.gate.port) for each in host_run.services}
    answer = ask(host, status, StatusRequest(root, ports, texts), HostStatus, timeout=60)
    try:
        for name, seen in answer.services.items():
            for release in (*seen.releases, seen.current, seen.good):
                check_names(name, release or "none")
            for release, kept in seen.releases.items():
                if kept.service:
                    checked(kept.service, f"{root}/services/{name}", release)
    except ValueError as error:
        answers.invalid("sparkwright-status", str(error))
    return answer


def services_of(host_run: HostRun, answer: HostStatus) -> dict[str, Service]:
    """Return a host's planned services by name; without a plan, the services of its status.

    A service is left out if its record is damaged or from another version of sparkwright.
    """
    if host_run.plan_known:
        return {service.name: service for service in host_run.services}
    return {
        name: kept.service
        for name, seen in answer.services.items()
        if (kept := seen.releases.get(seen.current or "")) and kept.service
    }


def unreadable(host_run: HostRun, answer: HostStatus) -> list[str]:
    """Return services with unreadable records, of a host without a plan."""
    return sorted(answer.services.keys() - services_of(host_run, answer).keys())

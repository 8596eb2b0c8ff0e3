"""The services of a host: as they are planned, or read back from it where the plan is broken."""

from __future__ import annotations

from pyinfra.api.host import Host

from sparkwright.facts.answers import invalid
from sparkwright.facts.asking import ask
from sparkwright.host import status
from sparkwright.host.service import Service, check_names, checked
from sparkwright.host.status import HostStatus, StatusRequest
from sparkwright.run.state import HostRun


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

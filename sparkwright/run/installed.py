"""What a host says that it runs: the answer of its status program, and its services by it."""

from __future__ import annotations

from pyinfra.api.host import Host

from sparkwright.checks.smoke import own_address
from sparkwright.facts.answers import invalid
from sparkwright.facts.asking import ask
from sparkwright.host import status
from sparkwright.host.status import HostStatus, StatusRequest
from sparkwright.run.state import HostRun
from sparkwright.site.installed import Installed, installed


def status_of(host: Host, one: HostRun, *, texts: bool) -> HostStatus:
    """What the host runs, and how it came to that. One remote execution."""
    request = StatusRequest(
        services_root=one.settings.services_root,
        ports={
            service.name: (own_address(service), service.port)
            for service in one.desired.plan.services
        },
        texts=texts,
    )
    return ask(host, status, request, HostStatus, timeout=60)


def installed_on(host: Host, one: HostRun) -> dict[str, Installed]:
    """The services of a host as it says itself, for a run without a plan."""
    return installed_in(one, status_of(host, one, texts=False))


def awake_on(host: Host, one: HostRun) -> dict[str, Installed]:
    """The same of those that do not sleep while another one of their group runs."""
    answer = status_of(host, one, texts=False)
    return {
        name: service
        for name, service in installed_in(one, answer).items()
        if name not in answer.sleeping
    }


def installed_in(one: HostRun, answer: HostStatus) -> dict[str, Installed]:
    """The same of a status.

    Raises:
        HostError: when it names what no service is called.
    """
    try:
        return installed(one.settings.services_root, answer)
    except ValueError as error:
        invalid("sparkwright-status", str(error))

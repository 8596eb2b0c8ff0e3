"""Ports: whether those of the services are free, and who holds them otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity
from sparkwright.plan.changes import is_ours
from sparkwright.plan.plan import HostPlan


@check("port")
def _ports(host: HostFacts) -> Iterator[Symptom]:
    settings = host.plan.settings
    needed = {
        proxy.port: f"the load balancer of {name}" for name, proxy in settings.load_balancer.items()
    }
    for port, user in sorted({**needed, **_service_ports(host.plan)}.items()):
        listener = host.observed.ports.get(port)
        if listener is None or is_ours(listener, host.observed):
            continue
        free = f"port {port} free for {user}"
        remedy = f"stop it ('sudo ss -ltnp sport = :{port}' shows it), or take another port"
        if listener.container is None:
            yield Symptom(f"port {port} is taken by {listener.command}", free, remedy=remedy)
            continue
        taken = f"port {port} is taken by the container {listener.container.partition(' ')[0]}"
        if settings.take_over:
            yield Symptom(
                taken,
                free,
                remedy="nothing: it is stopped for the service and kept; it comes back when the "
                "service gives no answers, and with `sparkwright remove`",
                severity=Severity.WARNING,
            )
        else:
            yield Symptom(
                taken,
                free,
                remedy="take it over with --data take_over=True (it is stopped, kept, and comes "
                f"back with `sparkwright remove`), or {remedy}",
            )


def _service_ports(plan: HostPlan) -> dict[int, str]:
    return {
        port: f"service {service.name}"
        for service in plan.services
        for port in (service.port, *((service.proxy.port,) if service.proxy else ()))
    }

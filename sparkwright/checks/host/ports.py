"""Ports: whether those of the services are free, and who holds them otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.host.facts import HostCheck, error, warning
from sparkwright.findings.finding import Finding
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.services import is_ours


def check(host: HostCheck) -> Iterator[Finding]:
    """Every port that is taken by something that is not ours."""
    settings = host.plan.settings
    needed = {
        proxy.port: f"the load balancer of {name}" for name, proxy in settings.load_balancer.items()
    }
    for port, who in sorted({**needed, **_service_ports(host.plan)}.items()):
        listener = host.observed.ports.get(port)
        if listener is None or is_ours(listener, host.observed):
            continue
        free, reason = f"port {port} free for {who}", "two servers can't listen on one port"
        remedy = f"stop it ('sudo ss -ltnp sport = :{port}' shows it), or take another port"
        if listener.container is None:
            taken = f"port {port} is taken by {listener.command}"
            yield error("port", taken, free, reason, remedy)
            continue
        taken = f"port {port} is taken by the container {listener.container.partition(' ')[0]}"
        if settings.take_over:
            yield warning(
                "port", taken, free, reason,
                "nothing: it is stopped for the service and kept; it comes back when the service "
                "gives no answers, and with `sparkwright remove`",
            )  # fmt: skip
        else:
            yield error(
                "port", taken, free, reason,
                f"take it over with --data take_over=True (it is stopped, kept, and comes back "
                f"with `sparkwright remove`), or {remedy}",
            )  # fmt: skip


def _service_ports(plan: HostPlan) -> dict[int, str]:
    return {
        port: f"service {service.name}"
        for service in plan.services
        for port in (service.port, *((service.proxy.port,) if service.proxy else ()))
    }

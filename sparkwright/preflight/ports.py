"""Ports: whether those of the services are free, and who holds them otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Finding
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.preflight.checks import HostCheck, error, warning
from sparkwright.preflight.observation import Listener, Probe
from sparkwright.preflight.units import OWN_UNITS


def check(host: HostCheck) -> Iterator[Finding]:
    """Every port that is taken by something that is not ours."""
    settings = host.plan.settings
    needed = {door.port: f"the load balancer of {name}" for name, door in settings.gateway.items()}
    for port, who in sorted({**needed, **_service_ports(host.plan)}.items()):
        listener = host.probe.ports.get(str(port))
        if listener is None or ours(listener, host.probe):
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


def unmanaged_containers(desired: Desired, probe: Probe) -> list[str]:
    """``name restart-policy`` of containers that make room for the plan's services."""
    ports = {str(port) for port in _service_ports(desired.plan)}
    return sorted(
        {
            listener.container
            for port, listener in probe.ports.items()
            if port in ports and listener.container and not ours(listener, probe)
        }
    )


def ours(listener: Listener, probe: Probe) -> bool:
    """A listener in a container of any of our services (ports may be exchanged), or in a door."""
    ids = [state.container.id for state in probe.services.values() if state.container]
    return any(one in listener.cgroup for one in (*ids, *OWN_UNITS))


def _service_ports(plan: HostPlan) -> dict[int, str]:
    return {
        port: f"service {service.name}"
        for service in plan.services
        for port in (service.port, *((service.door.port,) if service.door else ()))
    }

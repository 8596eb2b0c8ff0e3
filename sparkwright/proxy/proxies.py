"""Which proxies a host has: one before each service that asks for it, and one for a whole fleet."""

import json
from collections.abc import Mapping
from typing import Any

from sparkwright.config.inventory import lan_address
from sparkwright.config.settings import RolloutSettings
from sparkwright.config.templates import template
from sparkwright.engines import engine, metric_names
from sparkwright.findings.user_error import Problems
from sparkwright.host.lib.records import encode
from sparkwright.host.proxy.pool import HEALTH, SELF, HealthConfig, HealthService, Pool
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy.haproxy import Proxies, Proxy, Replica, ReplicaTls
from sparkwright.proxy.pools import pool_problems, replica_identity, replicas
from sparkwright.tls.host_certificates import serves_with


def proxies_of(
    plan: HostPlan, everyone: Mapping[str, Mapping[str, Any]], *, dry: bool = False
) -> Proxies | None:
    """All proxies of a host; None for a host without any.

    Args:
        everyone: data of every host of the inventory, whatever the run is limited to.
        dry: whether nothing is written: certificates that are missing are made for this run alone.

    Raises:
        UserError: when a fleet's proxy has nobody behind it, or hosts that do not serve.
    """
    Problems(pool_problems(plan, everyone)).stop()
    proxies = [_own(service) for service in plan.services if service.proxy]
    for name, settings in sorted(plan.settings.load_balancer.items()):
        behind = tuple(
            _replica(host, everyone[host], port, dry=dry)
            for host, port in replicas(name, settings, everyone).items()
        )
        proxies.append(Proxy(f"fleet-{name}", settings.port, behind, settings.bind))
    home = f"{plan.settings.services_root}/gateway"
    if not proxies:
        return None
    binds = [proxy.bind for proxy in proxies]
    tls = serves_with(plan.host, everyone.get(plan.host, {}), plan.settings.tls, binds, dry=dry)
    return Proxies(tuple(proxies), tls, home=home)


def _own(service: ServicePlan) -> Proxy:
    replica = Replica(SELF, str(service.socket), health=f"{HEALTH}/{service.name}.sock")
    bind = "*" if service.bind == "0.0.0.0" else service.bind
    return Proxy(
        service.name, service.port, (replica,), bind,
        engine_key=True, exclusive=service.settings.exclusive,
        on_request=service.settings.activate is not None, engine=service.engine,
    )  # fmt: skip


def _replica(host: str, data: Mapping[str, Any], port: int, *, dry: bool) -> Replica:
    result = replica_identity(host, data, dry=dry)
    tls = ReplicaTls(result.name, result.ca) if result and result.name else None
    return Replica(host, lan_address(host, data), port, port, tls)


def health_file(plan: HostPlan) -> str | None:
    """Input file of the health program; None where no service is behind a proxy."""
    services = tuple(
        HealthService(
            name=service.name,
            address=str(service.socket),
            health=f"{HEALTH}/{service.name}.sock",
            secrets=f"{plan.settings.services_root}/services/{service.name}/secrets.env",
            model=service.served_names[0],
            patience_seconds=60,
            routes=engine(service.engine).kinds(dict(service.arguments), service.task),
        )
        for service in plan.services
        if service.proxy
    )
    if not services:
        return None
    return json.dumps(encode(HealthConfig(services, metric_names())), indent=1) + "\n"


def health_unit(plan: HostPlan) -> str:
    """Text of the unit that reports health."""
    return template("gateway/health.service.j2").render(
        home=f"{plan.settings.services_root}/gateway", runtime=HEALTH.removeprefix("/run/")
    )


def leave_and_return(settings: RolloutSettings, service: str, *, others: bool) -> Pool:
    """How a switch leaves a service's proxy and comes back."""
    proxies = Proxies(())
    return Pool(
        service, proxies.admin_socket, proxies.master_socket,
        settings.notice_seconds, settings.drain_seconds, others,
    )  # fmt: skip

"""Which proxies a host has: one before each service that asks for it, and one for a whole fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.config.inventory import lan_address
from sparkwright.config.settings import (
    LoadBalancerSettings,
    RolloutSettings,
    ServiceSettings,
    is_loopback,
    tls_of,
)
from sparkwright.config.templates import template
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.host.contracts.proxies import (
    SELF,
    HealthConfig,
    HealthService,
    Pool,
    Sockets,
    pool_of,
)
from sparkwright.host.contracts.records import encode
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy.haproxy import (
    Proxies,
    Proxy,
    Replica,
    ReplicaTls,
)
from sparkwright.tls.host import identity, serves_with

#: Seconds without a request after which a service is asked for one token.
IDLE = 30


def proxies_of(plan: HostPlan, everyone: Mapping[str, Mapping[str, Any]]) -> Proxies | None:
    """All proxies of a host; None for a host without any.

    Args:
        everyone: data of every host of the inventory, whatever the run is limited to.

    Raises:
        UserError: when a fleet's proxy has nobody behind it, or hosts that do not serve.
    """
    problems: list[Finding] = []
    proxies = [_own(service) for service in plan.services if service.proxy]
    for name, settings in sorted(plan.settings.load_balancer.items()):
        where = f"load_balancer.{name}"
        serving = [host for host, data in everyone.items() if name in data.get("services", {})]
        wanted = settings.hosts or tuple(serving)
        problems += [
            mistake(
                f"{where}.hosts",
                f"{host} has no service {name!r}",
                suggest(host, serving),
                plan.host,
            )
            for host in wanted
            if host not in serving
        ]
        problems += [
            mistake(
                f"{where}.hosts",
                f"{name!r} of {host} listens where only {host} itself reaches it",
                'drop its "proxy": False, or its bind',
                plan.host,
            )
            for host in wanted
            if host in serving and is_loopback(_address(everyone[host]["services"][name]))
        ]
        replicas = []
        for host in wanted:
            if host in serving:
                try:
                    replicas.append(_replica(host, everyone[host], name))
                except UserError as error:
                    problems += error.findings
        if not any(host in serving for host in wanted):
            problems.append(
                mistake(
                    where,
                    f"no host of the inventory has a service {name!r}",
                    "name a service that hosts have",
                    plan.host,
                )
            )
        proxies.append(_fleet(name, settings, tuple(replicas)))
    problems += _taken(plan, proxies)
    if problems:
        raise UserError(problems)
    home = f"{plan.settings.services_root}/gateway"
    if not proxies:
        return None
    binds = [proxy.bind for proxy in proxies]
    tls = serves_with(plan.host, everyone.get(plan.host, {}), plan.settings.tls, binds)
    return Proxies(tuple(proxies), tls, home=home)


def _own(service: ServicePlan) -> Proxy:
    assert service.proxy is not None
    replica = Replica(SELF, "127.0.0.1", service.port, service.proxy.health_port)
    bind = "*" if service.proxy.bind == "0.0.0.0" else service.proxy.bind
    return Proxy(service.name, service.proxy.port, (replica,), bind, engine_key=True)


def _fleet(name: str, settings: LoadBalancerSettings, replicas: tuple[Replica, ...]) -> Proxy:
    return Proxy(f"fleet-{name}", settings.port, replicas, settings.bind)


def _replica(host: str, data: Mapping[str, Any], service: str) -> Replica:
    port = int(data["services"][service].get("port", 8000))
    return Replica(host, lan_address(host, data), port, port, _replica_tls(host, data))


def _replica_tls(host: str, data: Mapping[str, Any]) -> ReplicaTls | None:
    where = f"{host}: tls"
    found = identity(host, data, tls_of(data.get("tls"), where), where)
    if found is None:
        return None
    if found.name is None:
        raise UserError(
            [
                mistake(
                    where,
                    "its certificate is for addresses alone, and HAProxy verifies names",
                    "have a name added to it",
                )
            ]
        )
    return ReplicaTls(found.name, found.ca)


def _address(service: Mapping[str, Any]) -> str:
    """Where a service's clients connect, by data that may be another host's and not be whole."""
    known = {key: service[key] for key in ("bind", "proxy") if key in service}
    return ServiceSettings.model_construct(**known).address


def _taken(plan: HostPlan, proxies: list[Proxy]) -> Iterator[Finding]:
    ports = {service.port: service.name for service in plan.services}
    for proxy in proxies:
        if proxy.port in ports:
            yield mistake(
                f"load_balancer: {proxy.name}",
                f"port {proxy.port} is taken by {ports[proxy.port]!r} of the same host",
                "take another port",
                plan.host,
            )
        ports[proxy.port] = proxy.name


def health_file(plan: HostPlan) -> str | None:
    """What the health program reads; None where no service is behind a proxy."""
    services = tuple(
        HealthService(
            name=service.name,
            port=service.port,
            health_port=service.proxy.health_port,
            secrets=f"{plan.settings.services_root}/services/{service.name}/secrets.env",
            model=service.served_names[0],
            patience_seconds=60,
        )
        for service in plan.services
        if service.proxy
    )
    if not services:
        return None
    config = HealthConfig(services, IDLE, "/run/sparkwright-health/state.json")
    return json.dumps(encode(config), indent=1) + "\n"


def health_unit(plan: HostPlan) -> str:
    """Text of the unit that reports health."""
    return template("gateway/health.service.j2").render(
        home=f"{plan.settings.services_root}/gateway"
    )


def with_others(host: str, everyone: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """A host's services that other hosts serve too, behind the proxy of a fleet.

    Args:
        everyone: data of every host of the inventory.
    """
    found = set()
    for data in everyone.values():
        for name, settings in data.get("load_balancer", {}).items():
            serving = [one for one, its in everyone.items() if name in its.get("services", {})]
            replicas = settings.get("hosts") or serving
            if host in replicas and len(replicas) > 1:
                found.add(name)
    return frozenset(found)


def leave_and_return(
    proxies: Proxies, settings: RolloutSettings, service: str, *, others: bool
) -> Pool:
    """How a switch leaves a service's proxy and comes back."""
    sockets = Sockets(proxies.admin_socket, proxies.master_socket)
    return pool_of(service, sockets, settings.notice_seconds, settings.drain_seconds, others=others)

"""Proxies of a host: in front of each service with ``proxy``, and for all models."""

import json
from collections.abc import Sequence

from sparkwright.config import inventory, templates
from sparkwright.engines import engine, metric_names
from sparkwright.host.lib.records import encode
from sparkwright.host.models.document import DOOR, PAGE_SOCKET
from sparkwright.host.proxy.pool import HEALTH, SELF, HealthConfig, HealthService
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy.haproxy import MODELS, PAGE, ModelPool, Proxies, Proxy, Replica
from sparkwright.proxy.pools import Everyone, PlannedPool, replica_identity
from sparkwright.tls.host_certificates import serves_with


def proxies_of(
    plan: HostPlan, everyone: Everyone, pools: Sequence[PlannedPool] = (), *, dry: bool = False
) -> Proxies | None:
    """Return all proxies of a host; None for a host without proxies.

    Args:
        everyone: data of every host of the inventory, even in a limited run.
        pools: pools of every host, if this host has the address for all models.
        dry: whether nothing is written: missing certificates are made for this run alone.

    Raises:
        UserError: HAProxy can't verify a replica.
    """
    proxies = [_own(service) for service in plan.services if service.proxy]
    if address := plan.settings.address:
        program = Replica("program", DOOR, health=DOOR)
        proxies.append(Proxy(MODELS, address.port, (program,), address.bind))
        if address.open_webui:
            page = Replica("page", PAGE_SOCKET, health=PAGE_SOCKET)
            proxies.append(Proxy(PAGE, address.open_webui.port, (page,), address.bind))
    behind = tuple(_model_pool(each, everyone, dry=dry) for each in pools if address)
    limited = tuple(name for name, key in sorted(plan.settings.keys.items()) if key.limited)
    home = f"{plan.settings.services_root}/gateway"
    if not proxies:
        return None
    binds = [proxy.bind for proxy in proxies]
    tls = serves_with(plan.host, everyone.get(plan.host, {}), plan.tls, binds, dry=dry)
    return Proxies(tuple(proxies), tls, home=home, pools=behind, limited=limited)


def _own(service: ServicePlan) -> Proxy:
    replica = Replica(SELF, str(service.socket), health=f"{HEALTH}/{service.name}.sock")
    bind = "*" if service.bind == "0.0.0.0" else service.bind
    return Proxy(
        service.name, service.port, (replica,), bind,
        engine_key=True, exclusive=service.settings.exclusive,
        on_request=service.settings.activate is not None, engine=service.engine,
    )  # fmt: skip


def _model_pool(pool: PlannedPool, everyone: Everyone, *, dry: bool) -> ModelPool:
    replicas = []
    for host, service in pool.services.items():
        tls = replica_identity(host, pool.tls[host], dry=dry)
        address = inventory.lan_address(host, everyone[host])
        replicas.append(Replica(host, address, service.port, service.port, tls))
    return ModelPool(pool.name, tuple(replicas), pool.wakes)


def health_file(plan: HostPlan) -> str | None:
    """Return the health program's configuration; None if no service is behind a proxy."""
    services = tuple(
        HealthService(
            name=service.name,
            address=str(service.socket),
            health=f"{HEALTH}/{service.name}.sock",
            secrets=f"{plan.settings.services_root}/services/{service.name}/secrets.env",
            model=service.served_names[0],
            patience_seconds=60,
            routes=engine(service.engine).kinds(dict(service.arguments), service.task),
            sleeps=service.sleep.nap.state if service.sleep else "",
        )
        for service in plan.services
        if service.proxy
    )
    if not services:
        return None
    return json.dumps(encode(HealthConfig(services, metric_names())), indent=1) + "\n"


def health_unit(plan: HostPlan) -> str:
    """Return the text of the health program's unit."""
    return templates.template("gateway/health.service.j2").render(
        home=f"{plan.settings.services_root}/gateway", runtime=HEALTH.removeprefix("/run/")
    )

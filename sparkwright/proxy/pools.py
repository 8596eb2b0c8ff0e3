"""The pools behind the address for all models: their services, and obstacles."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sparkwright.config.settings import is_loopback
from sparkwright.config.values import mapping
from sparkwright.findings import finding, user_error
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.host.lib.records import dataclass, replace
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.tls.host_certificates import identity
from sparkwright.tls.names import Tls

#: Data of every host of the inventory, including hosts outside the run's limit. Data outside the
#: limit has not been validated.
Everyone = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PlannedPool:
    """Services of several hosts that answer to the same names.

    Attributes:
        names: names of the models for clients.
        services: services of each host.
        tls: TLS of each host.
    """

    name: str
    names: tuple[str, ...]
    services: Mapping[str, ServicePlan]
    tls: Mapping[str, Tls]

    @property
    def wakes(self) -> tuple[str, ...]:
        """Hosts on which a request activates the sleeping service."""
        return tuple(host for host, each in self.services.items() if each.settings.activate)


#: The pools of all hosts.
Pools = tuple[PlannedPool, ...]


def planned_pools(plans: Iterable[HostPlan]) -> Pools:
    """Return the pools of all hosts: each pool has services with equal names on the same hosts.

    A service without a proxy accepts no client's key, and no other machine reaches a service at a
    loopback address: neither service is behind the address.
    """
    serving: dict[str, dict[str, ServicePlan]] = {}
    tls: dict[str, Tls] = {}
    for plan in sorted(plans, key=lambda plan: plan.host):
        tls[plan.host] = plan.tls
        for service in plan.services:
            for name in service.served_names if behind_address(service) else ():
                serving.setdefault(name, {})[plan.host] = service
    pools: list[PlannedPool] = []
    for name, services in serving.items():
        same = next((each for each in pools if each.services == services), None)
        if same is not None:
            pools[pools.index(same)] = replace(same, names=(*same.names, name))
            continue
        base = f"pool.{next(iter(services.values())).name}"
        more = sum(each.name.startswith(base) for each in pools)
        pools.append(PlannedPool(f"{base}.{more}" if more else base, (name,), services, tls))
    return tuple(pools)


def behind_address(service: ServicePlan) -> bool:
    """Return whether requests reach a service through the address for all models."""
    return service.proxy and not is_loopback(service.bind)


def unverified(pools: Iterable[PlannedPool]) -> Iterator[finding.Finding]:
    """Yield findings of replicas that HAProxy can't verify, before a configuration is written."""
    for host, tls in {host: pool.tls[host] for pool in pools for host in pool.services}.items():
        if tls == "own":
            continue  # the CA is made on first use
        try:
            replica_identity(host, tls, dry=True)
        except user_error.UserError as error:
            yield from error.findings


def replica_identity(host: str, tls: Tls, *, dry: bool) -> TlsIdentity | None:
    """Return the name and the CA by which HAProxy verifies a replica; None if the replica serves
    http.

    Raises:
        UserError: the certificate has no name that HAProxy can verify.
    """
    tls_identity = identity(host, tls, dry=dry)
    if tls_identity is not None and tls_identity.name is None:
        problem = "the certificate contains only addresses, and HAProxy verifies names"
        raise user_error.refusal(f"{host}: tls", problem, "have a name added to the certificate")
    return tls_identity


def with_others(host: str, everyone: Everyone) -> frozenset[str]:
    """Return a host's services that other hosts also serve behind the fleet's address."""
    if all(data.get("address") is None for data in everyone.values()):
        return frozenset()
    services = {other: _serving(other, data) for other, data in everyone.items()}
    beside = [names for other, names in services.items() if other != host]
    return services.get(host, frozenset()) & frozenset().union(*beside)


def _serving(host: str, data: Mapping[str, Any]) -> frozenset[str]:
    """Return a host's services from its data, which may be incomplete; followers do not count."""
    names = set()
    for name, service in mapping(data.get("services")).items():
        cluster = mapping(mapping(data.get("clusters")).get(str(mapping(service).get("cluster"))))
        hosts = cluster.get("hosts")
        followers = hosts[1:] if isinstance(hosts, list | tuple) else ()
        if isinstance(service, Mapping) and host not in followers:
            names.add(name)
    return frozenset(names)

"""The replicas behind a load balancer: which hosts they are, and what prevents one to be."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from sparkwright.config.settings import (
    HostSettings,
    LoadBalancerSettings,
    ServiceSettings,
    is_loopback,
)
from sparkwright.config.values import mapping
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, refusal, suggest
from sparkwright.findings.validation import problems_of
from sparkwright.host.fetch.request import TlsIdentity
from sparkwright.plan.plan import HostPlan
from sparkwright.tls.host_certificates import identity

#: Data of every host of the inventory, whatever the run is limited to. Those that it is not
#: limited to were judged by nobody yet.
Everyone = Mapping[str, Mapping[str, Any]]


def replicas(name: str, settings: LoadBalancerSettings, everyone: Everyone) -> dict[str, int]:
    """Hosts behind a load balancer -> the port at which each serves."""
    chosen = settings.hosts or tuple(_serving(name, everyone))
    return {host: _clients(everyone[host]["services"][name]).port for host in chosen}


def pool_problems(plan: HostPlan, everyone: Everyone) -> Iterator[Finding]:
    """Faults in a host's load balancers. Nothing is made for them yet."""
    for name, settings in sorted(plan.settings.load_balancer.items()):
        where = f"load_balancer.{name}"
        serving = _serving(name, everyone)
        for host in settings.hosts or serving:
            yield from (problem.on(plan.host) for problem in _problems(name, where, host, everyone))
        if not any(host in serving for host in settings.hosts or serving):
            observed = f"no host of the inventory has a service {name!r}"
            yield mistake(where, observed, "name a service that hosts have", plan.host)


def replica_identity(host: str, data: Mapping[str, Any], *, dry: bool) -> TlsIdentity | None:
    """How HAProxy verifies a replica; None where that serves http.

    Raises:
        UserError: for one that it can't verify.
    """
    where = f"{host}: tls"
    try:
        tls = HostSettings.model_validate({"services": {}, "tls": data.get("tls")}).tls
    except ValidationError as error:
        raise UserError(problems_of(error, host)) from None
    tls_identity = identity(host, data, tls, where, dry=dry)
    if tls_identity is not None and tls_identity.name is None:
        problem = "its certificate is for addresses alone, and HAProxy verifies names"
        raise refusal(where, problem, "have a name added to it")
    return tls_identity


def with_others(host: str, everyone: Everyone) -> frozenset[str]:
    """A host's services that other hosts serve too, behind the proxy of a fleet."""
    result = set()
    for data in everyone.values():
        for name, settings in mapping(data.get("load_balancer")).items():
            chosen = mapping(settings).get("hosts") or _serving(name, everyone)
            if host in chosen and len(chosen) > 1:
                result.add(name)
    return frozenset(result)


def _problems(name: str, where: str, host: str, everyone: Everyone) -> Iterator[Finding]:
    serving = _serving(name, everyone)
    if host not in serving:
        remedy = suggest(host, serving)
        yield mistake(f"{where}.hosts", f"{host} has no service {name!r}", remedy)
        return
    try:
        clients = _clients(everyone[host]["services"][name])
    except ValidationError as error:
        yield from problems_of(error, f"{where}.hosts: services.{name} of {host}")
        return
    if is_loopback(clients.address):
        problem = f"{name!r} of {host} listens where only {host} itself reaches it"
        yield mistake(f"{where}.hosts", problem, 'drop its "proxy": False, or its bind')
    if everyone[host].get("tls") == "own":
        return  # made when it is needed
    try:
        replica_identity(host, everyone[host], dry=True)
    except UserError as error:
        yield from error.findings


def _follows(host: str, data: Mapping[str, Any], name: str) -> bool:
    """Whether another host, the head of its cluster, answers for a service."""
    cluster = mapping(data["services"][name]).get("cluster")
    hosts = mapping(mapping(data.get("clusters")).get(str(cluster))).get("hosts")
    return isinstance(hosts, list | tuple) and host in hosts[1:]


def _serving(name: str, everyone: Everyone) -> list[str]:
    return [
        host
        for host, data in everyone.items()
        if isinstance(mapping(data.get("services")).get(name), Mapping)
        and not _follows(host, data, name)
    ]


def _clients(service: Mapping[str, Any]) -> ServiceSettings:
    """Where a service's clients connect, by data that need not be whole."""
    settings = {key: service[key] for key in ("port", "bind", "proxy") if key in service}
    return ServiceSettings.model_validate({"recipe": "any", **settings})

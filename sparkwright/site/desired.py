"""Plan, resolve and render the desired state of a run's hosts; report all mistakes at once."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sparkwright.config.inventory import HostInput
from sparkwright.config.keys import Keys, keys_of
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import RolloutSettings
from sparkwright.engines import engine
from sparkwright.findings import finding, user_error
from sparkwright.host.directories import Directory
from sparkwright.host.ranks.link import KEY
from sparkwright.host.service import Service
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.service import render_service, service_home
from sparkwright.proxy import haproxy, open_webui
from sparkwright.proxy.pools import Pools, planned_pools, with_others
from sparkwright.proxy.proxies import proxies_of
from sparkwright.resolve.credentials import account, hub_token
from sparkwright.resolve.lock import Resolution
from sparkwright.site.address import door_of
from sparkwright.site.clusters import unlike_releases
from sparkwright.site.fleet import PlannedHost, plan_fleet, stopping
from sparkwright.site.resolution import pinned, site_problems, with_geometry
from sparkwright.tls.host_certificates import peer_certificate, prepare_ca
from sparkwright.tls.names import Certificate


def rendered(
    plan: HostPlan, resolution: Resolution, *, others: frozenset[str] = frozenset()
) -> tuple[Service, ...]:
    """Render every service of a host.

    Args:
        others: services that other hosts also serve, behind one address.
    """
    return tuple(
        render_service(plan, service, resolution, others=service.name in others)
        for service in plan.services
    )


def secrets_of(plan: HostPlan, keys: Keys) -> dict[str, Secret]:
    """Texts of the files with the services' keys, by path."""
    secrets = {}
    for service in plan.services:
        home = service_home(plan, service)
        # Behind a proxy the engine has its own key, so that client keys change without a restart.
        key = keys.engine if service.proxy else keys.default
        variable = engine(service.engine).key_variable
        secrets[f"{home}/secrets.env"] = Secret(f"{variable}={key.value}\n")
        for own in service.settings.secrets:
            if secret_text := keys.services.get((service.name, own.name)):
                secrets[f"{home}/secrets/{own.name}"] = secret_text
        if service.rank:
            secret = Secret(f"{KEY}={keys.ranks[service.rank.cluster].value}\n")
            # A follower answers no clients, and does not have the engine's key.
            name = "secrets" if service.follower else "ranks"
            secrets[f"{home}/{name}.env"] = secret
    return secrets


def directories(plan: HostPlan) -> tuple[Directory, ...]:
    """The directories of a host, parents first.

    The first directory, for the models, may be a separate file system or belong to the user: it is
    made if it is missing, and otherwise left unchanged.
    """
    root = plan.settings.services_root
    result = [Directory(plan.settings.models_root), Directory(root)]
    result += [Directory(f"{root}/{name}") for name in ("services", "runtime")]
    result += [Directory(f"{root}/{name}", 0o700) for name in ("state", "images")]
    for service in plan.services:
        home = service_home(plan, service)
        result += [Directory(home, 0o750), Directory(f"{home}/releases", 0o750)]
        result += [Directory(path, 0o700) for path in (service.offload_directory,) if path]
    return tuple(result)


@dataclass
class DesiredHost:
    """The desired state of a host in a run.

    Attributes:
        violations: violated rules that do not stop the run: warnings, and silenced violations.
        keys: the host's API keys.
        token: token for gated models; None without a token.
        accounts: registry -> ``user:password``.
        proxies: the host's proxies; None without proxies.
        peer_certificate: certificate with which the host serves other hosts; None for plain HTTP.
    """

    desired: Desired
    violations: tuple[finding.Finding, ...]
    keys: Keys
    token: Secret | None
    accounts: Mapping[str, str | None] = field(repr=False)
    proxies: haproxy.Proxies | None
    peer_certificate: Certificate | None

    @cached_property
    def secrets(self) -> dict[str, Secret]:
        """Texts of the files with the keys of the host's services, by path."""
        return secrets_of(self.desired.plan, self.keys)

    @property
    def directories(self) -> tuple[Directory, ...]:
        """The host's directories, parents first."""
        return directories(self.desired.plan)


@dataclass(frozen=True)
class DesiredFleet:
    """All hosts by name, and the roll-out to hosts that already serve."""

    hosts: dict[str, DesiredHost]
    rollout: RolloutSettings


def desired_fleet(
    inputs: Sequence[HostInput],
    everyone: Mapping[str, Mapping[str, Any]],
    more: Iterable[finding.Finding] = (),
    *,
    others: Sequence[HostInput] = (),
    dry: bool = False,
    resolves: bool = True,
    commands: bool = True,
) -> DesiredFleet:
    """Plan the hosts of a run, resolve their images and models, and render their releases.

    Args:
        everyone: data of every host of the inventory, even in a limited run.
        more: earlier problems.
        others: the inventory's hosts outside the run. These hosts are planned if the run has an
            address for all models, which also serves their models.
        dry: whether no file is written: missing keys and certificates are made only for this run.
        resolves: whether releases are rendered with answers of registry and hub; otherwise only
            proxies and keys are known.
        commands: whether commands of services' secrets run.

    Raises:
        UserError: names every problem, and every violated rule that is not silenced.
    """
    fleet = plan_fleet(inputs)
    planned = fleet.hosts
    address = any(host.plan.settings.address for host in planned.values())
    beside = plan_fleet(others if address else ())
    problems = user_error.Problems([*fleet.problems, *beside.problems, *more])
    problems += site_problems(planned, everyone, beside.hosts)
    problems.stop()
    every = {**planned, **beside.hosts}
    pools = planned_pools(host.plan for host in every.values()) if address else ()
    keys = {
        name: keys_of(name, host.plan.settings, os.environ, dry=dry, commands=commands)
        for name, host in planned.items()
    }
    resolution = Resolution(images={}, models={})
    with problems.collected():
        if resolves:
            resolution = pinned(planned)
            planned = with_geometry(planned, resolution)
    problems += stopping(planned)
    problems.stop()
    desired = {
        name: Desired(
            host.plan,
            host.catalog,
            resolution,
            rendered(host.plan, resolution, others=with_others(name, everyone)) if resolves else (),
        )
        for name, host in planned.items()
    }
    user_error.Problems(unlike_releases(desired)).stop()
    ca = () if dry else tuple(prepare_ca(everyone))
    return DesiredFleet(
        hosts={
            name: _desired_host(
                desired[name], host.violations + ca, keys[name], everyone, every, pools, dry=dry
            )
            for name, host in planned.items()
        },
        rollout=next(iter(planned.values())).plan.settings.rollout,
    )


def _desired_host(
    desired: Desired,
    violations: tuple[finding.Finding, ...],
    keys: Keys,
    everyone: Mapping[str, Mapping[str, Any]],
    every: Mapping[str, PlannedHost],
    pools: Pools,
    *,
    dry: bool,
) -> DesiredHost:
    plan, settings, images = desired.plan, desired.plan.settings, desired.resolution.images
    token = hub_token(settings.hub_token_source)
    registries = {each.pulled.registry for each in plan.references.images if each.name in images}
    accounts = {each: account(settings.registry_auth_source, each) for each in registries}
    proxies = proxies_of(plan, everyone, pools, dry=dry)
    proxies = proxies and replace(
        proxies,
        address=door_of(plan, pools, every, everyone, proxies.pools_socket),
        page=open_webui.page_of(plan, pools, everyone, keys, desired.resolution, dry=dry),
    )
    peer = None
    if settings.peer_sharing:
        pem = proxies.tls if proxies else None
        peer = peer_certificate(plan.host, everyone[plan.host], plan.tls, pem, dry=dry)
    return DesiredHost(desired, violations, keys, token, accounts, proxies, peer)

"""The desired state of all hosts of a run: planned, resolved, rendered; every mistake at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkwright.config.inventory import HostInput
from sparkwright.config.keys import Keys, keys_of
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import RolloutSettings
from sparkwright.config.ssh_keys import SSH_KEY
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.user_error import UserError
from sparkwright.host.directories import Directory
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.rollout import agreed
from sparkwright.proxy.haproxy import Proxies
from sparkwright.proxy.pools import with_others
from sparkwright.proxy.proxies import proxies_of
from sparkwright.resolve.hub_token import hub_token
from sparkwright.resolve.registry_account import account
from sparkwright.resolve.resolution import registry_of
from sparkwright.site.clusters import unlike_releases
from sparkwright.site.fleet import PlannedHost, plan_fleet, with_geometry
from sparkwright.site.judged import site_problems
from sparkwright.site.resolution import pinned
from sparkwright.site.services import directories, rendered, secrets_of
from sparkwright.tls.host import PeerCertificate, peer_certificate


@dataclass(frozen=True)
class DesiredHost:
    """One host: its desired state, the rules that it breaks, its secrets and its proxies, and what
    it serves other hosts by; None in clear."""

    desired: Desired
    violations: tuple[Finding, ...]
    keys: Keys
    token: Secret | None
    proxies: Proxies | None
    peer_certificate: PeerCertificate | None

    @property
    def secrets(self) -> dict[str, Secret]:
        """Texts of the files with its services' keys, by path."""
        return secrets_of(self.desired.plan, self.keys)

    @property
    def directories(self) -> tuple[Directory, ...]:
        """Its directories, parents first."""
        return directories(self.desired.plan)


@dataclass(frozen=True)
class DesiredFleet:
    """All hosts by name, and how those that serve already are switched."""

    hosts: dict[str, DesiredHost]
    rollout: RolloutSettings


def desired_fleet(
    inputs: Sequence[HostInput],
    everyone: Mapping[str, Mapping[str, Any]],
    more: Iterable[Finding] = (),
    *,
    dry: bool = False,
) -> DesiredFleet:
    """Plan the hosts of a run, resolve what they name, and render their releases.

    Args:
        everyone: data of every host of the inventory, whatever the run is limited to.
        more: problems that were found before.
        dry: whether nothing is written: keys and certificates that are missing are this run's.

    Raises:
        UserError: every problem, and every rule that is broken and not silenced.
    """
    fleet = plan_fleet(inputs)
    planned = fleet.or_raise([*more, *site_problems(fleet.hosts, everyone)])
    stop(planned)
    every = [host.plan.settings for host in planned.values()]
    keys = {
        name: keys_of(name, one.plan.settings, os.environ, dry=dry) for name, one in planned.items()
    }
    tokens = {one: hub_token(one) for one in {s.hub_token_source for s in every}}
    for host in planned.values():
        for service in host.plan.services:
            account(host.plan.settings.registry_auth_source, registry_of(service.image))
    resolution = pinned(planned)
    planned = with_geometry(planned, resolution)
    stop(planned)
    proxies = {name: proxies_of(host.plan, everyone, dry=dry) for name, host in planned.items()}
    desired = {
        name: Desired(
            host.plan,
            host.catalog,
            resolution,
            rendered(host.plan, resolution, others=with_others(name, everyone)),
        )
        for name, host in planned.items()
    }
    if unlike := list(unlike_releases(desired)):
        raise UserError(unlike)
    return DesiredFleet(
        hosts={
            name: DesiredHost(
                desired=desired[name],
                violations=host.violations,
                keys=keys[name],
                token=tokens[host.plan.settings.hub_token_source],
                proxies=proxies[name],
                peer_certificate=_peer_certificate(
                    host.plan, everyone[name], proxies[name], dry=dry
                ),
            )
            for name, host in planned.items()
        },
        rollout=agreed({name: host.plan.settings.rollout for name, host in planned.items()}),
    )


def _peer_certificate(
    plan: HostPlan, data: Mapping[str, Any], proxies: Proxies | None, *, dry: bool
) -> PeerCertificate | None:
    if not plan.settings.peer_sharing:
        return None
    pem = proxies.tls if proxies else None
    return peer_certificate(plan.host, data, plan.settings.tls, pem, dry=dry)


def stop(planned: Mapping[str, PlannedHost]) -> None:
    """End the run when a rule is violated that nobody has silenced; what prevents one host's login
    fails that host alone."""
    found = errors(one for host in planned.values() for one in host.violations)
    found = [one for one in found if one.id != SSH_KEY]
    if found:
        raise UserError(found)

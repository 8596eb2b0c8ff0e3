"""A whole fleet judged before anything is made or asked: `check` and a deploy say the same."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparkwright.config.keys import key_problems
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.rollout import agreed
from sparkwright.proxy.pools import pool_problems
from sparkwright.resolve.hub_token import hub_token
from sparkwright.resolve.lock import to_resolution
from sparkwright.resolve.registry_account import account
from sparkwright.resolve.resolution import registry_of
from sparkwright.site.clusters import cluster_problems
from sparkwright.site.fabric import fabric_problems
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import locks


def site_problems(
    planned: Mapping[str, PlannedHost], everyone: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """What is wrong with hosts that can be planned, and with files of the controller.

    Nothing is written, no command of the user's is run, and nobody is asked.

    Args:
        everyone: data of every host of the inventory, whatever the run is limited to.
    """
    found: list[Finding] = []
    for name, host in planned.items():
        found += pool_problems(host.plan, everyone)
        found += key_problems(name, host.plan.settings, os.environ)
        found += (one.on(name) for one in _files(host.plan))
        found += _canaries(host.plan, tuple(everyone))
    found += cluster_problems(everyone)
    found += fabric_problems(everyone)
    if planned:
        found += _of(lambda: agreed({n: one.plan.settings.rollout for n, one in planned.items()}))
    return [*dict.fromkeys([*found, *_locks(planned)])]


def _files(plan: HostPlan) -> Iterator[Finding]:
    """Files and directories of the controller that settings name."""
    settings = plan.settings
    if isinstance(settings.hub_token_source, str):
        yield from _of(lambda: hub_token(settings.hub_token_source))
    if isinstance(settings.registry_auth_source, str):
        for service in plan.services:
            registry = registry_of(service.image)
            yield from _of(lambda at=registry: account(settings.registry_auth_source, at))
    if settings.bundle is not None and not Path(settings.bundle).is_dir():
        what = f"there is no directory {settings.bundle!r}"
        yield mistake("bundle", what, "name one that `sparkwright bundle` made")
    if "lock_file" in settings.model_fields_set and not Path(settings.lock_file).exists():
        what = f"there is no file {settings.lock_file!r}, so that nothing would be pinned"
        remedy = "sparkwright lock INVENTORY makes it; or correct its spelling, or drop lock_file"
        yield mistake("lock_file", what, remedy)


def _canaries(plan: HostPlan, hosts: tuple[str, ...]) -> Iterator[Finding]:
    named = plan.settings.rollout.canaries
    for name in () if isinstance(named, int) else named:
        if name not in hosts:
            what = f"no host of the inventory is called {name!r}"
            yield mistake("rollout.canaries", what, suggest(name, hosts), plan.host)


def _locks(planned: Mapping[str, PlannedHost]) -> Iterator[Finding]:
    """Locks that can't be read, or lack what the plans name."""
    try:
        known = locks(planned)
    except UserError as error:
        yield from error.findings
        return
    for host in planned.values():
        path = host.plan.settings.lock_file
        if (lock := known[path]) is not None:
            yield from _of(
                lambda at=path, its=lock, one=host.plan: to_resolution([one.references], its, at)
            )


def _of(step: Any) -> tuple[Finding, ...]:
    """What a step finds wrong."""
    try:
        step()
    except UserError as error:
        return error.findings
    return ()

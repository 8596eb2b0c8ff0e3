"""What the tags and revisions of a fleet stand for: from its lock, or from registries and hubs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkwright.config.secrets import Source
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.hub_token import hub_token
from sparkwright.resolve.lock import Lock, read_lock, to_resolution
from sparkwright.resolve.resolution import Resolution, known_bad, model_names, resolve
from sparkwright.site.fleet import PlannedHost


def ask(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """Ask registries, hubs and git repositories for everything that the plans name."""
    found = Resolution({}, {})
    groups: dict[tuple[tuple[str, ...], Source | None], list[PlannedHost]] = {}
    for host in hosts.values():
        settings = host.plan.settings
        key = settings.catalog_directories, settings.hub_token_source
        groups.setdefault(key, []).append(host)
    for (_, source), group in groups.items():
        token = hub_token(source)
        named = [host.plan.references for host in group]
        known = {key: model for host in group for key, model in host.known.items()}
        part = resolve(named, group[0].catalog, token.value if token else None, known)
        found.images.update(part.images)
        found.models.update(part.models)
    return found


def locks(hosts: Mapping[str, PlannedHost]) -> dict[str, Lock | None]:
    """The lock files that the hosts name, read."""
    paths = {host.plan.settings.lock_file for host in hosts.values()}
    return {path: read_lock(Path(path)) for path in sorted(paths)}


def pinned(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """What everything stands for: locked hosts ask nobody.

    Raises:
        UserError: for everything that is not locked, could not be asked, or is known to be bad.
    """
    found = Resolution({}, {})
    problems: list[Finding] = []
    open_hosts: dict[str, PlannedHost] = {}
    known = locks(hosts)
    for name, host in hosts.items():
        path = host.plan.settings.lock_file
        lock = known[path]
        if lock is None:
            open_hosts[name] = host
            continue
        try:
            part = to_resolution([host.plan.references], lock, path)
        except UserError as error:
            problems.extend(error.findings)
            continue
        problems.extend(known_bad(model_names([host.plan.references]), host.catalog, part))
        found.images.update(part.images)
        found.models.update(part.models)
    if problems:
        raise UserError(dict.fromkeys(problems))
    if open_hosts:
        part = ask(open_hosts)
        found.images.update(part.images)
        found.models.update(part.models)
    return found

"""What the tags and revisions of a fleet stand for: from its lock, or from registries and hubs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sparkwright.config.secret_commands import line
from sparkwright.config.secrets import Secret, Source
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.resolve.lock import Lock, read_lock, to_resolution
from sparkwright.resolve.resolution import Resolution, known_bad, model_names, resolve
from sparkwright.site.fleet import PlannedHost


def hub_token(source: Source | None) -> Secret | None:
    """The token for gated models: of a file or command, or of the environment.

    Raises:
        UserError: when the file can't be read, or the command prints none.
    """
    if source is None:
        token = os.environ.get("HF_TOKEN", "").strip()
        return Secret(token) if token else None
    if not isinstance(source, str):
        return Secret(line(source, "hub_token_command"))
    try:
        return Secret(Path(source).read_text(encoding="utf-8").strip())
    except OSError as error:
        raise UserError(
            [
                mistake(
                    f"hub_token_file: {source}",
                    f"can't be read: {error.strerror}",
                    "put the token there, or set HF_TOKEN instead",
                )
            ]
        ) from None


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
        part = resolve(named, group[0].catalog, token.value if token else None)
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

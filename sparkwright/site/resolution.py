"""Resolve a fleet's tags and revisions: from its lock, or from registries and hubs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparkwright.config.secrets import Source
from sparkwright.findings.user_error import Problems, UserError
from sparkwright.plan.plan import with_additions
from sparkwright.resolve.credentials import hub_token
from sparkwright.resolve.lock import Lock, read_lock, to_resolution
from sparkwright.resolve.resolution import Resolution, known_bad, resolve
from sparkwright.site.fleet import PlannedHost


def ask(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """Ask registries, hubs and git repositories for everything that the plans name."""
    resolution = Resolution(images={}, models={})
    groups: dict[Source | None, list[PlannedHost]] = {}
    for host in hosts.values():
        groups.setdefault(host.plan.settings.hub_token_source, []).append(host)
    for source, group in groups.items():
        token = hub_token(source)
        named = [host.plan.references for host in group]
        models = {key: model for host in group for key, model in host.resolved_models.items()}
        resolution.add(resolve(named, token.value if token else None, models))
    problems = Problems()
    for host in hosts.values():
        problems += known_bad(host.plan.references, host.catalog, resolution)
    problems.stop()
    return resolution


def locks(hosts: Mapping[str, PlannedHost]) -> dict[str, Lock | None]:
    """The lock files that the hosts name, read."""
    paths = {host.plan.settings.lock_file for host in hosts.values()}
    return {path: read_lock(Path(path)) for path in sorted(paths)}


def by_locks(hosts: Mapping[str, PlannedHost]) -> Iterator[tuple[str, Callable[[], Resolution]]]:
    """Each locked host, and what resolves everything of it by its lock. That raises UserError for
    what is not locked."""
    models = locks(hosts)
    for name, host in hosts.items():
        path = host.plan.settings.lock_file
        if (lock := models[path]) is not None:
            yield name, partial(to_resolution, [host.plan.references], lock, path)


def pinned(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """Resolve all tags and revisions; for locked hosts, no registry or hub is asked.

    Raises:
        UserError: for everything that is not locked, could not be asked, or is known to be bad.
    """
    resolution = Resolution(images={}, models={})
    problems = Problems()
    unlocked = dict(hosts)
    for name, resolved in by_locks(hosts):
        host = unlocked.pop(name)
        with problems.collected():
            part = resolved()
            problems += known_bad(host.plan.references, host.catalog, part)
            resolution.add(part)
    problems.stop()
    if unlocked:
        resolution.add(ask(unlocked))
    return resolution


def with_geometry(
    hosts: Mapping[str, PlannedHost], resolution: Resolution
) -> dict[str, PlannedHost]:
    """The hosts with what the models' own files are: the KV cache that their configurations say,
    headers of GGUF files, and the Python files among them. Rules are judged by these."""
    planned_hosts = {}
    for name, host in hosts.items():
        references, models = host.plan.references.models, dict(host.catalog.models)
        resolved = {model.key: resolution.model(model) for model in references}
        python = {model.name: resolved[model.key].python_files for model in references}
        for reference in references:
            model = resolved[reference.key]
            update = {"kv": model.kv, "gguf": model.facts and model.facts.gguf}
            if reference.name in models and any(update.values()):
                models[reference.name] = models[reference.name].model_copy(update=update)
        services = tuple(with_additions(service, resolved) for service in host.plan.services)
        plan = replace(host.plan, python_files=python, resolved=resolved, services=services)
        catalog = replace(host.catalog, models=models)
        planned_hosts[name] = replace(host, plan=plan, catalog=catalog)
    return planned_hosts


def with_locked_geometry(hosts: Mapping[str, PlannedHost]) -> dict[str, PlannedHost]:
    """The same by the hosts' locks, where everything of a host is locked."""
    planned_hosts = dict(hosts)
    for name, resolved in by_locks(hosts):
        with suppress(UserError):  # `lock --check` reports an incomplete lock
            planned_hosts |= with_geometry({name: hosts[name]}, resolved())
    return planned_hosts

"""Validate a fleet before any file is made or any server is queried, and resolve tags and
revisions.

Tags and revisions come from the lock, or from registries and hubs. `check` and a deploy report the
same findings.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

from sparkwright.config import inventory, keys, secrets
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, UserError, suggest
from sparkwright.plan.plan import HostPlan, with_additions
from sparkwright.plan.rollout import unlike
from sparkwright.resolve import credentials, registry
from sparkwright.resolve.lock import Lock, Resolution, known_bad, read_lock, resolve, to_resolution
from sparkwright.site.address import address_problems
from sparkwright.site.clusters import cluster_problems, fabric_problems
from sparkwright.site.fleet import PlannedHost

_MESSAGES = Messages(__file__)


def site_problems(
    planned: Mapping[str, PlannedHost],
    everyone: Mapping[str, Mapping[str, Any]],
    others: Mapping[str, PlannedHost] | None = None,
) -> list[Finding]:
    """Faults of hosts that can be planned, and of files on the controller.

    The check writes nothing, runs none of the user's commands, and contacts no server.

    Args:
        everyone: data of every host of the inventory, even in a limited run.
        others: further hosts, whose models are behind the address of a planned host.
    """
    problems = Problems()
    for name, host in planned.items():
        problems += keys.key_problems(name, host.plan.settings, os.environ)
        problems += (finding.on(name) for finding in _credentials(host.plan))
        problems += (finding.on(name) for finding in _secrets(host.plan))
        problems += _named(host.plan, tuple(everyone))
    problems += address_problems({**planned, **(others or {})}, everyone)
    problems += _shared_addresses(everyone)
    problems += cluster_problems(everyone)
    problems += fabric_problems(everyone)
    problems += unlike({name: host.plan.settings.rollout for name, host in planned.items()})
    with problems.collected():
        for _, resolved in by_locks(planned):
            with problems.collected():
                resolved()
    return [*dict.fromkeys(problems)]


def _credentials(plan: HostPlan) -> list[Finding]:
    """Faults of files on the controller that have credentials or keys."""
    result, settings = Problems(), plan.settings
    token, auth = settings.hub_token_source, settings.registry_auth_source
    with result.collected():
        if isinstance(token, str):
            credentials.hub_token(token)
    for image in plan.references.images:
        with result.collected():
            if isinstance(auth, str):
                credentials.account(auth, image.pulled.registry)
            if image.pulled.key:
                registry.verifier(image.pulled.key)
    return result


def _secrets(plan: HostPlan) -> list[Finding]:
    """Faults of services' secrets; for a command, only a missing program."""
    result = Problems()
    for service in plan.services:
        for secret in service.settings.secrets:
            with result.collected():
                where = f"{service.origins['secrets']}.secrets.{secret.name}"
                if secret.command is None:
                    secrets.of_service(secret.source, secret.variable, os.environ, where)
                elif which(secret.command[0]) is None:
                    raise _MESSAGES.refusal("no-secret-program", where)
    return result


def _named(plan: HostPlan, hosts: tuple[str, ...]) -> Iterator[Finding]:
    """Missing files, directories and hosts that settings name."""
    settings, canaries = plan.settings, plan.settings.rollout.canaries
    if settings.bundle is not None and not Path(settings.bundle).is_dir():
        yield _MESSAGES.mistake("no-bundle", "bundle", plan.host, path=settings.bundle)
    if "lock_file" in settings.model_fields_set and not Path(settings.lock_file).exists():
        yield _MESSAGES.mistake("no-lock", "lock_file", plan.host, path=settings.lock_file)
    if settings.models_root.rstrip("/") == settings.services_root.rstrip("/"):
        yield _MESSAGES.mistake("one-root", "models_root", plan.host, path=settings.models_root)
    commands = {f"keys.{name}.command": key.command for name, key in settings.keys.items()}
    commands |= {name: value for name, value in settings if name.endswith("_command")}
    if secrets.VARIABLE in os.environ:
        del commands["api_key_command"]
    for name, command in commands.items():
        if command and which(command[0]) is None:
            yield _MESSAGES.mistake("no-program", name, plan.host, program=command[0])
    for name in () if isinstance(canaries, int) else canaries:
        if name not in hosts:
            facts = {"name": name, "near": suggest(name, hosts)}
            yield _MESSAGES.mistake("no-canary", "rollout.canaries", plan.host, **facts)


def _text(value: Any) -> str:
    try:
        return str(value)
    except RecursionError:  # nested lists are a separate mistake
        return "too deep"


def _shared_addresses(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Hosts that the controller reaches at the address and port of another host, by the same
    path.
    """
    names: dict[tuple[str, ...], str] = {}
    for name, data in everyone.items():
        way = (_text(data.get(key)) for key in ("ssh_config_file", "ssh_paramiko_connect_kwargs"))
        address = inventory.ssh_address(name, data).lower(), _text(data.get("ssh_port") or 22), *way
        if (other := names.setdefault(address, name)) != name:
            facts = {"address": address[0], "other": other}
            yield _MESSAGES.mistake("one-address", "ssh_hostname", name, **facts)


def ask(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """Query registries, hubs and git repositories for all references in the plans."""
    resolution = Resolution(images={}, models={})
    groups: dict[secrets.Source | None, list[PlannedHost]] = {}
    for host in hosts.values():
        groups.setdefault(host.plan.settings.hub_token_source, []).append(host)
    for source, group in groups.items():
        token = credentials.hub_token(source)
        named = [host.plan.references for host in group]
        models = {key: model for host in group for key, model in host.resolved_models.items()}
        resolution.add(resolve(named, token.value if token else None, models))
    problems = Problems()
    for host in hosts.values():
        problems += known_bad(host.plan.references, host.catalog, resolution)
    problems.stop()
    return resolution


def locks(hosts: Mapping[str, PlannedHost]) -> dict[str, Lock | None]:
    """Read the lock files of the hosts."""
    paths = {host.plan.settings.lock_file for host in hosts.values()}
    return {path: read_lock(Path(path)) for path in sorted(paths)}


def by_locks(hosts: Mapping[str, PlannedHost]) -> Iterator[tuple[str, Callable[[], Resolution]]]:
    """Each locked host, and a function that resolves the host's references by the lock.

    The resolver raises UserError for unlocked references, and for patches of another image.
    """
    models = locks(hosts)
    for name, host in hosts.items():
        path = host.plan.settings.lock_file
        if (lock := models[path]) is not None:
            yield name, partial(to_resolution, [host.plan.references], lock, path)


def pinned(hosts: Mapping[str, PlannedHost]) -> Resolution:
    """Resolve all tags and revisions; for locked hosts, no registry or hub is queried.

    Raises:
        UserError: names each reference that is not locked, could not be resolved, or is known to be
            bad.
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
    """The hosts with facts of the models' own files: the KV cache of their configurations,
    headers of GGUF files, and the Python files among them. The rules use these facts.
    """
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
    """The hosts, with the facts of their locks if all references of a host are locked."""
    planned_hosts = dict(hosts)
    for name, resolved in by_locks(hosts):
        with suppress(UserError):  # `lock --check` reports an incomplete lock
            planned_hosts |= with_geometry({name: hosts[name]}, resolved())
    return planned_hosts

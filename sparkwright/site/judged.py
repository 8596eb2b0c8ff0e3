"""A whole fleet judged before anything is made or asked: `check` and a deploy say the same."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any

from sparkwright.config.inventory import ssh_address
from sparkwright.config.keys import key_problems
from sparkwright.config.secrets import VARIABLE, of_service
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, suggest
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.rollout import agreed
from sparkwright.proxy.pools import pool_problems
from sparkwright.resolve.credentials import account, hub_token
from sparkwright.resolve.signatures import verifier
from sparkwright.site.clusters import cluster_problems, fabric_problems
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import by_locks

_MESSAGES = Messages(__file__)


def site_problems(
    planned: Mapping[str, PlannedHost], everyone: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """Faults of hosts that can be planned, and of files on the controller.

    Nothing is written, no command of the user's is run, and nobody is asked.

    Args:
        everyone: data of every host of the inventory, whatever the run is limited to.
    """
    problems = Problems()
    for name, host in planned.items():
        problems += pool_problems(host.plan, everyone)
        problems += key_problems(name, host.plan.settings, os.environ)
        problems += (finding.on(name) for finding in _credentials(host.plan))
        problems += (finding.on(name) for finding in _secrets(host.plan))
        problems += _named(host.plan, tuple(everyone))
    problems += _shared_addresses(everyone)
    problems += cluster_problems(everyone)
    problems += fabric_problems(everyone)
    if planned:
        with problems.collected():
            agreed({name: host.plan.settings.rollout for name, host in planned.items()})
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
            hub_token(token)
    for image in plan.references.images:
        with result.collected():
            if isinstance(auth, str):
                account(auth, image.pulled.registry)
            if image.pulled.key:
                verifier(image.pulled.key)
    return result


def _secrets(plan: HostPlan) -> list[Finding]:
    """Faults of services' secrets that come from files and variables."""
    result = Problems()
    for service in plan.services:
        for secret in service.settings.secrets:
            with result.collected():
                if secret.command is None:
                    where = f"{service.origins['secrets']}.secrets.{secret.name}"
                    of_service(secret.source, secret.variable, os.environ, where)
    return result


def _named(plan: HostPlan, hosts: tuple[str, ...]) -> Iterator[Finding]:
    """Files, directories and hosts that settings name and that are not there."""
    settings, canaries = plan.settings, plan.settings.rollout.canaries
    if settings.bundle is not None and not Path(settings.bundle).is_dir():
        yield _MESSAGES.mistake("no-bundle", "bundle", plan.host, path=settings.bundle)
    if "lock_file" in settings.model_fields_set and not Path(settings.lock_file).exists():
        yield _MESSAGES.mistake("no-lock", "lock_file", plan.host, path=settings.lock_file)
    if settings.models_root.rstrip("/") == settings.services_root.rstrip("/"):
        yield _MESSAGES.mistake("one-root", "models_root", plan.host, path=settings.models_root)
    commands = {f"keys.{name}.command": key.command for name, key in settings.keys.items()}
    commands |= {name: value for name, value in settings if name.endswith("_command")}
    if VARIABLE in os.environ:
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
    except RecursionError:  # lists within lists, which is a mistake of its own
        return "too deep"


def _shared_addresses(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Hosts that the controller reaches at the address and port of another host, the same way."""
    names: dict[tuple[str, ...], str] = {}
    for name, data in everyone.items():
        way = (_text(data.get(key)) for key in ("ssh_config_file", "ssh_paramiko_connect_kwargs"))
        address = ssh_address(name, data).lower(), _text(data.get("ssh_port") or 22), *way
        if (other := names.setdefault(address, name)) != name:
            facts = {"address": address[0], "other": other}
            yield _MESSAGES.mistake("one-address", "ssh_hostname", name, **facts)

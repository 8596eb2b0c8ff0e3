"""One run of pyinfra as a site: planned before the first connection, reported at the end.

pyinfra reads ``config.py`` first, then inventory and group_data, then calls ``State.init`` and
connects. ``install`` puts the planning between the last two, so that every mistake in the user's
input is told before any host is touched.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.context import ctx_state

from roles import connection, user_files
from sparkwright.catalog.gpu import parse_query
from sparkwright.config.inventory import HostInput, ssh_address
from sparkwright.config.secrets import Secret, api_key
from sparkwright.config.settings import RolloutSettings
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.render import text
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.release import Release, render_release
from sparkwright.plan.rollout import Rollout, agreed, batches
from sparkwright.preflight.observation import Probe
from sparkwright.proxy.haproxy import Gateway
from sparkwright.proxy.proxies import gateway_of, with_others
from sparkwright.report import run as report
from sparkwright.report.run import Outcome
from sparkwright.resolve.registry_account import account
from sparkwright.resolve.resolution import Resolution, registry_of
from sparkwright.site.fleet import PlannedHost, plan_fleet, with_geometry
from sparkwright.site.resolution import hub_token, pinned
from sparkwright.smoke.result import Smoke


@dataclass
class HostRun:
    """One host in this run: what it shall be, what was seen of it, what became of it.

    Attributes:
        violations: of rules that do not stop it: warnings, and silenced ones.
        outcomes: what services run where that is not what was planned, by name.
        locked: whether this run holds the host's lock.
        answer: what a question of the command line was answered, as plain data.
        gateway: the doors that it shall have.
        others: its services that other hosts serve too, behind one address.
        connection: addresses of controller and host, as far as they see each other directly.
    """

    wanted: Desired
    violations: tuple[Finding, ...]
    key: Secret
    token: Secret | None
    gateway: Gateway | None = None
    others: frozenset[str] = frozenset()
    connection: tuple[str, str] | None = None
    probe: Probe | None = None
    findings: list[Finding] = field(default_factory=list)
    refused: str | None = None
    changes: list[str] = field(default_factory=list)
    smoke: dict[str, Smoke] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    answer: Any = None
    locked: bool = False

    @property
    def plan(self) -> HostPlan:
        """The host's plan."""
        return self.wanted.plan

    @property
    def seen(self) -> Probe:
        """The probe, for code that runs after preflight only."""
        assert self.probe is not None, "a role ran before preflight"
        return self.probe


@dataclass
class Site:
    """All hosts of this run, by name."""

    inventory: str
    hosts: dict[str, HostRun]
    resolution: Resolution
    meter: connection.Meter
    share_token: Secret
    rollout: Rollout
    rollout_settings: RolloutSettings
    dry: bool
    started: float = field(default_factory=time.monotonic)


_current: Site | None = None


def host_run(host: Host) -> HostRun | None:
    """This host's part of the run; None once it failed or was refused."""
    if _current is None:
        raise RuntimeError(
            "config.py of the project was not read: run pyinfra in the project's folder"
        )
    if host not in host.state.active_hosts:
        return None
    return _current.hosts[host.name]


def _site() -> Site:
    assert _current is not None, "roles run after the planning"
    return _current


def live() -> dict[str, HostRun]:
    """The hosts that were probed and are neither refused nor failed, in the inventory's order."""
    return {
        name: run
        for name, run in _site().hosts.items()
        if run.probe is not None and run.refused is None
    }


def runs() -> dict[str, HostRun]:
    """All hosts of this run."""
    return _site().hosts


def rollout() -> Rollout:
    """How far this run's roll-out is."""
    return _site().rollout


def rollout_settings() -> RolloutSettings:
    """How this run's roll-out goes."""
    return _site().rollout_settings


def paint(level: str) -> str:
    """A finding's level in its colour."""
    return click.style(level, fg={"error": "red", "warning": "yellow"}.get(level, "cyan"))


def dry() -> bool:
    """Whether this run only looks."""
    return _site().dry


def share_token() -> str:
    """What hosts show each other when one takes from another: made once per site."""
    return _site().share_token.value


def install() -> None:
    """Hook the planning into this run of pyinfra. Called by ``config.py``."""
    state: State = ctx_state.get()
    parameters = click.get_current_context().params
    _or_exit(partial(user_files.check, parameters["inventory"], parameters["group_data"]))
    original = state.init

    def init(inventory: Inventory, config: Any, initial_limit: list[Host] | None = None) -> None:
        _or_exit(partial(_plan, inventory, initial_limit, parameters))
        original(inventory, config, initial_limit=initial_limit)
        # A host that fails is left alone and named at the end: the others need no question.
        state.should_raise_failed_hosts = lambda _state: False
        if _current is not None:
            state.add_callback_handler(connection.Watcher(_current.meter, _refuse, _leave))

    state.init = init  # type: ignore[method-assign]


def _or_exit(step: Callable[[], None]) -> None:
    try:
        step()
    except UserError as error:
        click.echo(click.style("--> ", fg="red") + str(error), err=True)
        sys.exit(2)


def _plan(inventory: Inventory, limit: list[Host] | None, parameters: dict[str, Any]) -> None:
    global _current
    _check_choice(inventory, parameters)
    if not any(
        name.endswith("deploy.py") or name.startswith("roles.") for name in parameters["operations"]
    ):
        return  # an ad-hoc command or fact: no plan is needed
    if not parameters["yes"] and not parameters["dry"] and not sys.stdin.isatty():
        raise UserError(
            [
                mistake(
                    "command line",
                    "pyinfra would ask before it changes anything, and nobody can answer",
                    "add --yes, or --dry to only look",
                )
            ]
        )
    hosts = list(inventory) if limit is None else limit
    fleet = plan_fleet(
        HostInput(
            host.name,
            host.data.dict(),
            partial(_origin, inventory, host, parameters["inventory"]),
        )
        for host in hosts
    )
    planned = fleet.or_raise(_stray_group_data(inventory))
    _stop(planned)
    every = [host.plan.settings for host in planned.values()]
    keys = {path: api_key(Path(path), os.environ) for path in {s.api_key_file for s in every}}
    tokens = {path: hub_token(path) for path in {s.hub_token_file for s in every}}
    for host in planned.values():
        for service in host.plan.services:
            account(host.plan.settings.registry_auth_file, registry_of(service.image))
    resolution = pinned(planned)
    planned = with_geometry(planned, resolution)
    _stop(planned)
    passed = [one for host in planned.values() for one in host.violations]
    if passed:
        click.echo(text(passed, paint=paint), err=True)
    everyone = {host.name: host.data.dict() for host in inventory}
    gateways = {name: gateway_of(host.plan, everyone) for name, host in planned.items()}
    meter = connection.Meter()
    settings = agreed({name: host.plan.settings.rollout for name, host in planned.items()})
    _current = Site(
        inventory=parameters["inventory"],
        hosts={
            name: HostRun(
                wanted=Desired(
                    host.plan,
                    host.catalog,
                    resolution,
                    tuple(
                        render_release(host.plan, service, resolution)
                        for service in host.plan.services
                    ),
                ),
                violations=host.violations,
                key=keys[host.plan.settings.api_key_file],
                token=tokens[host.plan.settings.hub_token_file],
                gateway=gateways[name],
                others=with_others(name, everyone),
            )
            for name, host in planned.items()
        },
        resolution=resolution,
        meter=meter,
        share_token=api_key(Path(".sparkwright/share_token"), {}),
        rollout=Rollout(batches(list(planned), settings)),
        rollout_settings=settings,
        dry=parameters["dry"],
    )
    atexit.register(_report)


def _stop(planned: dict[str, PlannedHost]) -> None:
    """End the run when a rule is violated that nobody has silenced."""
    stop = errors(one for host in planned.values() for one in host.violations)
    if stop:
        raise UserError(stop)


def _check_choice(inventory: Inventory, parameters: dict[str, Any]) -> None:
    """An inventory without hosts, or a --limit that matches none, is a mistake, not success."""
    if len(inventory) == 0:
        raise UserError(
            [
                mistake(
                    "command line: INVENTORY",
                    f"{parameters['inventory']!r} gives no hosts",
                    "name an existing file such as inventory/lab.py",
                )
            ]
        )
    hosts = [host.name for host in inventory]
    groups = [name for name, members in inventory.groups.items() if members]
    problems = []
    for option in ("limit", "exclude"):
        for pattern in parameters.get(option) or ():
            known = [*hosts, *groups]
            if pattern not in groups and not user_files.matches(pattern, hosts):
                problems.append(
                    mistake(
                        f"command line: --{option} {pattern}",
                        "this is no host and no group of the inventory",
                        suggest(pattern, known),
                    )
                )
    if problems:
        raise UserError(problems)


def _origin(inventory: Inventory, host: Host, filename: str, key: str) -> str:
    """The file that gives a host this key, in pyinfra's own order of precedence."""
    if key in inventory.get_override_data():
        return "--data"
    if key in inventory.get_host_data(host.name):
        return filename
    for group in reversed(host.groups):
        if key in inventory.get_group_data(group):
            return f"group_data/{group}.py"
    return "group_data/all.py" if key in inventory.get_data() else filename


def _stray_group_data(inventory: Inventory) -> Iterator[Finding]:
    """group_data of a group that has no hosts, when a group without data is spelt almost so."""
    bare = [
        name
        for name, hosts in inventory.groups.items()
        if hosts and not inventory.get_group_data(name)
    ]
    for name, data in inventory.group_data.items():
        if data and not inventory.groups.get(name):
            remedy = suggest(name, bare)
            if remedy.startswith("did you mean"):
                yield mistake(
                    f"group_data/{name}.py", f"the inventory has no group {name!r}", remedy
                )


def _refuse(host: Host, reason: str) -> None:
    if _current is not None and host.name in _current.hosts:
        _current.hosts[host.name].refused = reason


def _leave(host: Host) -> None:
    from roles import lock  # it is a role, and so needs this module

    if _current is not None and host.name in _current.hosts:
        lock.give(host, _current.hosts[host.name])


def _report() -> None:
    if _current is None:
        return
    asked = os.environ.get("SPARKWRIGHT_ANSWERS")
    if asked:  # a command of sparkwright's asks the hosts and prints by itself
        answers = {
            name: {"answer": run.answer, "refused": run.refused}
            for name, run in _current.hosts.items()
        }
        Path(asked).write_text(json.dumps(answers), encoding="utf-8")
        return
    rows = [
        report.Row(
            host=name,
            services=tuple(_service_row(name, run, release) for release in run.wanted.releases),
            refused=run.refused,
            findings=tuple(run.findings),
            changes=tuple(run.changes),
            executions=_current.meter.executions.get(name, 0),
            **_gpu(run),
        )
        for name, run in _current.hosts.items()
    ]
    record = Path(".sparkwright/last-run.json")
    record.parent.mkdir(mode=0o700, exist_ok=True)
    record.write_text(report.as_json(rows, dry=_current.dry), encoding="utf-8")
    click.echo(
        report.render(
            rows,
            dry=_current.dry,
            seconds=time.monotonic() - _current.started,
            key_hint=_key_hint(),
        )
    )


def _service_row(name: str, run: HostRun, release: Release) -> report.ServiceRow:
    """What is planned; or what runs, where that is something else."""
    service = release.service
    outcome = run.outcomes.get(service.name)
    row = report.ServiceRow(
        name=service.name,
        address=f"{_address(name)}:{service.client_port}",
        served_names=service.served_names,
        tag=service.image.tag,
        image=release.image,
        models=dict(release.models),
        release=release.id,
        smoke=run.smoke.get(service.name),
    )
    if outcome is None:
        return row
    return replace(
        row,
        tag="", models={}, image=outcome.image or "", release=outcome.release or "?",
        smoke=outcome.smoke, outcome=outcome.state,
    )  # fmt: skip


def _gpu(run: HostRun) -> dict[str, str | None]:
    """Name and driver of the host's first GPU, where it was probed and has one."""
    gpus = parse_query(run.probe.gpu.out) if run.probe else []
    return {"gpu": gpus[0].name, "driver": gpus[0].driver} if gpus else {}


def _address(name: str) -> str:
    state: State = ctx_state.get()
    host = state.inventory.get_host(name)
    return ssh_address(name, host.data.dict())


def _key_hint() -> str:
    assert _current is not None
    if os.environ.get("SPARKWRIGHT_API_KEY"):
        return "$SPARKWRIGHT_API_KEY"
    first = next(iter(_current.hosts.values()))
    return f"$(cat {first.plan.settings.api_key_file})"

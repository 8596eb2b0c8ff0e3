"""A run of pyinfra over a site: planned before the first connection, reported at the end.

``config.py`` of a site calls ``install``. pyinfra reads config.py first, then inventory and
group_data, then connects: the planning goes in between, so that every mistake in the user's input
is reported before any host is touched.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State

from sparkwright.config import user_files
from sparkwright.config.command_line import choice_problems, stray_group_data
from sparkwright.config.inventory import HostInput, ssh_address
from sparkwright.config.secrets import api_key
from sparkwright.facts import hooks, others
from sparkwright.facts.memory import memory
from sparkwright.findings.render import text
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.operations.changing import paint
from sparkwright.operations.connections import Connections
from sparkwright.operations.login import private_key
from sparkwright.operations.peer_keys import RunKeys
from sparkwright.plan.rollout import Rollout, batches
from sparkwright.run import ending, planless
from sparkwright.run.progress import Progress
from sparkwright.run.state import HostRun, Run, attach
from sparkwright.site.clusters import left_out
from sparkwright.site.desired import DesiredFleet, desired_fleet

#: The role by which commands look at hosts, with a plan or without.
_STATUS = "roles.status.status"


def install() -> None:
    """Hook planning and report into this run of pyinfra. Called by a site's ``config.py``."""
    parameters = hooks.command_line()
    emergency = planless.allowed(parameters["operations"])
    wrong: list[BaseException | None] = [None]
    files = (parameters["inventory"], parameters["group_data"], parameters.get("data") or ())

    def check() -> None:
        if emergency:
            wrong[0] = planless.check_files(*files)
        else:
            user_files.check(*files)

    _or_exit(check)
    runs: list[Run] = []

    def plan(inventory: Inventory, limit: list[Host] | None) -> None:
        _or_exit(lambda: runs.extend(_plan(inventory, limit, parameters, wrong[0])))

    def ready(state: State) -> None:
        # config.py has turned it off: what is loaded by now stays, and is not looked at again.
        gc.freeze()
        gc.enable()
        hooks.guard_connections()
        hooks.load_keys_with(private_key)
        hooks.never_ask_about_failed_hosts(state)
        if runs:
            state.add_callback_handler(Connections())
            if runs[0].answers:
                state.add_callback_handler(Progress(runs[0].answers))
            others.follow(state)

    hooks.quick_operation_order()
    hooks.before_connecting(plan, ready)

    def report() -> None:
        for run in runs:
            ending.report(run, as_json=parameters["json_output"])

    atexit.register(gc.freeze)  # called last: Python would collect everything once more, 250 ms
    atexit.register(report)


def _or_exit(step: Callable[[], None]) -> None:
    try:
        step()
    except UserError as error:
        click.echo(click.style("--> ", fg="red") + str(error), err=True)
        sys.exit(2)


def _plan(
    inventory: Inventory,
    limit: list[Host] | None,
    parameters: dict[str, Any],
    wrong: BaseException | None,
) -> list[Run]:
    """The requested run; none for an ad-hoc command or fact, which needs no plan.

    Args:
        wrong: why group_data can't be read.
    """
    groups = {name: [host.name for host in members] for name, members in inventory.groups.items()}
    problems = [
        *choice_problems(
            parameters["inventory"],
            [host.name for host in inventory],
            groups,
            {option: parameters.get(option) or () for option in ("limit", "exclude")},
        )
    ]
    if problems:
        raise UserError(problems)
    if not any(
        name.endswith("deploy.py") or name.startswith("roles.") for name in parameters["operations"]
    ):
        return []
    if not (
        parameters["yes"] or parameters["dry"] or parameters["json_output"] or sys.stdin.isatty()
    ):
        raise UserError(
            [
                mistake(
                    "command line",
                    "pyinfra would ask before it changes anything, and nobody can answer",
                    "add --yes, or --dry to only look",
                )
            ]
        )
    # In the inventory's order: of --limit pyinfra makes a set.
    hosts = {host.name: host for host in inventory if limit is None or host in limit}
    planned = partial(_planned, inventory, hosts, groups, parameters)
    if planless.allowed(parameters["operations"]):
        unplanned = partial(planless.unplanned_run, hosts, parameters, _answers(parameters))
        run = planless.planned_or_not(planned, unplanned, wrong)
    else:
        run = planned()
    attach(run, hosts)
    return [run]


def _planned(
    inventory: Inventory,
    hosts: dict[str, Host],
    groups: dict[str, list[str]],
    parameters: dict[str, Any],
) -> Run:
    everyone = {host.name: host.data.dict() for host in inventory}
    fleet = desired_fleet(
        [
            HostInput(
                name,
                host.data.dict(),
                partial(_origin, inventory, host, parameters["inventory"]),
                frozenset(("all", *host.groups)),
            )
            for name, host in hosts.items()
        ],
        everyone,
        [
            *stray_group_data(groups, [one for one, data in inventory.group_data.items() if data]),
            *(left_out(hosts, everyone) if _changes(parameters["operations"]) else ()),
        ],
        dry=not _may_make(parameters),
    )
    passed = [one for host in fleet.hosts.values() for one in host.violations]
    if passed:
        click.echo(text(passed, paint=paint), err=True)
    return _run(fleet, hosts, inventory, parameters)


def _changes(operations: Sequence[str]) -> bool:
    """Whether services are switched: by a deploy file, or by a role that does it."""
    return any(
        name.endswith(".py") or name.startswith(("roles.serving", "roles.rollback"))
        for name in operations
    )


def _run(
    fleet: DesiredFleet, hosts: dict[str, Host], inventory: Inventory, parameters: dict[str, Any]
) -> Run:
    everyone = {host.name: host.data.dict() for host in inventory}
    return Run(
        inventory=parameters["inventory"],
        hosts={
            name: HostRun(
                name=name,
                desired=one.desired,
                violations=one.violations,
                keys=one.keys,
                token=one.token,
                memory=memory(hosts[name]),
                address=ssh_address(name, everyone[name]),
                proxies=one.proxies,
                peer_certificate=one.peer_certificate,
            )
            for name, one in fleet.hosts.items()
        },
        peer_keys=RunKeys(api_key(".sparkwright/peer_secret", {}, dry=not _may_make(parameters))),
        rollout=Rollout(batches(list(hosts), fleet.rollout)),
        rollout_settings=fleet.rollout,
        dry=parameters["dry"],
        answers=_answers(parameters),
    )


def _may_make(parameters: dict[str, Any]) -> bool:
    """Whether keys and certificates that the site lacks are made and kept: not by a run that only
    looks, or that an emergency needs. On another machine than the fleet's that key would be
    nobody's, and the next deploy from there would take it for the fleet's."""
    asks = planless.allowed(parameters["operations"]) or _STATUS in parameters["operations"]
    return not (parameters["dry"] or asks)


def _answers(parameters: dict[str, Any]) -> str | None:
    """The file that a command of sparkwright's names as an argument of its role.

    Read here, so that hosts that can't be reached get their line in it too.
    """
    words = parameters["operations"]
    named = [word.partition("=")[2] for word in words if word.startswith("answers=")]
    return named[0] if named else None


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

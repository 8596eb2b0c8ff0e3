"""A pyinfra run over a site: the plan before the first connection, and the report at the end.

``config.py`` of a site calls ``install``. pyinfra reads config.py first, then inventory and
group_data, then connects. sparkwright plans before it connects, so that every mistake in the user's
input is reported before any host is changed.
"""

import atexit
import gc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from gevent import Timeout
from pydantic import ValidationError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.context import ctx_state

from sparkwright.catalog import Catalog
from sparkwright.config import command_line, secrets
from sparkwright.config.connection_data import connection_data
from sparkwright.config.inventory import HostInput, check_inventory, lan_address
from sparkwright.config.keys import Keys
from sparkwright.config.settings import HostSettings, RolloutSettings
from sparkwright.documents import caches
from sparkwright.facts import hooks, others
from sparkwright.facts.memory import memory
from sparkwright.findings.render import paint, text
from sparkwright.findings.user_error import Problems, UserError, refusal
from sparkwright.host.lib.records import dataclass
from sparkwright.plan.desired import Desired
from sparkwright.plan.peer_keys import THIS_PROCESS, RunKeys
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.rollout import Rollout, batches
from sparkwright.resolve.lock import Resolution
from sparkwright.run import connections, ending
from sparkwright.run.state import HostRun, Run, attach
from sparkwright.site.clusters import left_out
from sparkwright.site.desired import DesiredFleet, DesiredHost, desired_fleet
from sparkwright.text.visible import visible

#: Settings that a run reads from a broken plan, if possible: sparkwright's directories on the
#: hosts, whether to break a lock, and the roll-out.
_READ = ("models_root", "services_root", "break_lock", "rollout")
_LONGEST = 300


def unplanned_fleet(hosts: Mapping[str, Mapping[str, Any]]) -> DesiredFleet:
    """Return hosts without a plan.

    Args:
        hosts: readable data of each host, by name.
    """
    settings = {name: _settings(data) for name, data in hosts.items()}
    rollouts = [setting.rollout for setting in settings.values()]
    return DesiredFleet(
        {
            name: DesiredHost(
                Desired(HostPlan(name, own, ()), Catalog(), Resolution(images={}, models={}), ()),
                violations=(),
                keys=Keys({}, secrets.Secret("")),
                token=None,
                accounts={},
                proxies=None,
                peer_certificate=None,
            )
            for name, own in settings.items()
        },
        rollouts[0] if rollouts.count(rollouts[0]) == len(rollouts) else RolloutSettings(),
    )


def broken(error: BaseException) -> str:
    """Describe in one line why the plan is broken."""
    if isinstance(error, UserError):
        first, *more = error.findings
        problem = f"{first.subject}: {first.observed}" + (f", and {len(more)} more" if more else "")
    else:
        problem = f"{type(error).__name__}: {error}"
    return (
        f"the plan is broken: {visible(problem, _LONGEST)} (sparkwright deploy --dry shows "
        "the message); the hosts' own state follows"
    )


def _settings(data: Mapping[str, Any]) -> HostSettings:
    """Return the valid settings among the keys that a run without a plan reads."""
    texts: dict[str, Any] = {"services": {}}
    for key in _READ:
        if key in data:
            try:
                HostSettings.model_validate({"services": {}, key: data[key]})
            except ValidationError:
                continue
            texts[key] = data[key]
    return HostSettings.model_validate(texts)


#: Deadline in seconds for planning in an emergency; registry and hub usually answer in two or three
#: seconds.
_PATIENCE = 15


@dataclass(frozen=True)
class Invocation:
    """A run that a command line requests.

    Attributes:
        overrides: ``key=value`` texts, as for pyinfra's ``--data``.
        limit, exclude: names and groups of hosts, and patterns of names.
        group_data: further folders of group data.
        planless: whether the run uses the state stored on the hosts if the plan is broken.
        makes_secrets: whether to make and keep missing keys and certificates: not in a read-only
            run or in an emergency. On another machine, the new key would be unknown to the hosts,
            and the next deploy from there would replace the fleet's key.
        switches: whether the run switches services.
        resolves: whether to look up images and models; a change of keys needs no registry or hub.
    """

    inventory: str
    overrides: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    group_data: tuple[str, ...] = ()
    dry: bool = False
    planless: bool = False
    makes_secrets: bool = False
    switches: bool = False
    resolves: bool = True


class CommandState(State):
    """pyinfra's state in a sparkwright command, which plans its run itself."""


def install() -> None:
    """Add the planning and the report to this run of pyinfra; a site's ``config.py`` calls
    ``install``.
    """
    if isinstance(ctx_state.get(), CommandState):
        return
    parameters = hooks.command_line()
    invocation = _of_pyinfra(parameters)
    runs: list[Run] = []

    def plan(inventory: Inventory, limit: list[Host] | None) -> None:
        names = None if limit is None else [host.name for host in limit]
        _or_exit(lambda: runs.extend(_planned_by_pyinfra(inventory, names, invocation, parameters)))

    def reported() -> None:
        for run in runs:
            ending.report(run, as_json=parameters["json_output"])

    _or_exit(lambda: read_files(invocation))
    hooks.before_connecting(plan, lambda state: ready(state, planned=bool(runs)))
    atexit.register(gc.freeze)  # called last; saves a collection of 250 ms at exit
    atexit.register(reported)


def ready(state: State, *, planned: bool) -> None:
    """Make pyinfra's connections bounded and safe, once the plan is made.

    A planned run also follows connections and operations.
    """
    # config.py has turned the collector off. Loaded modules stay in memory and need no collection.
    gc.freeze()
    gc.enable()
    hooks.quick_operation_order()
    hooks.guard_connections()
    hooks.load_keys_with(connections.private_key)
    hooks.never_ask_about_failed_hosts(state)
    if planned:
        state.add_callback_handler(connections.Connections())
        others.follow(state)


def read_files(invocation: Invocation) -> BaseException | None:
    """Check the user's files before pyinfra reads them.

    Returns:
        The fault of group_data, in a run that continues without group_data.

    Raises:
        UserError: any other file can't be read.
    """
    files = (invocation.inventory, invocation.group_data, invocation.overrides)
    if not invocation.planless:
        check_inventory(*files)
        return None
    check_inventory(invocation.inventory, (), invocation.overrides, own_folder=False)
    try:
        check_inventory(*files)
    except (Exception, SystemExit) as error:
        hooks.pass_over_broken_group_data(lambda file: connection_data(Path(file)))
        return error
    return None


def plan(
    inventory: Inventory,
    limit: Sequence[str] | None,
    invocation: Invocation,
    broken: BaseException | None = None,
) -> Run:
    """Plan a run, before any connection.

    Args:
        limit: names of the selected hosts; None for all hosts.
        broken: reason why group_data can't be read.

    Raises:
        UserError: the message names every mistake in the user's input.
    """
    if invocation.makes_secrets:
        caches.WRITTEN.set()
    # Keep the inventory's order: pyinfra turns --limit into a set.
    hosts = {host.name: host for host in inventory if limit is None or host.name in limit}
    planned = partial(_planned, inventory, hosts, invocation)
    run = planned() if not invocation.planless else _planless(planned, hosts, invocation, broken)
    attach(run, hosts)
    return run


def _planless(
    planned: Callable[[], Run],
    hosts: dict[str, Host],
    invocation: Invocation,
    fault: BaseException | None,
) -> Run:
    """Return the planned run.

    If the plan is broken, return a run that uses the state stored on the hosts, and needs only the
    user's inventory and connections.
    """
    problem = f"a registry, the hub or a command for a secret did not answer within {_PATIENCE} s"
    remedy = "check the internet connection, or run `sparkwright lock`"
    try:
        if fault is not None:
            raise fault
        with Timeout(_PATIENCE, refusal("the internet", problem, remedy)):
            return planned()
    except (Exception, SystemExit) as error:
        return unplanned(hosts, invocation, broken(error))


def _of_pyinfra(parameters: dict[str, Any]) -> Invocation:
    overrides, limit, exclude, group_data = (
        tuple(parameters.get(name) or ()) for name in ("data", "limit", "exclude", "group_data")
    )
    return Invocation(
        parameters["inventory"],
        overrides,
        limit,
        exclude,
        group_data,
        dry=parameters["dry"],
        makes_secrets=not parameters["dry"],
        switches=_deploys(parameters) or "roles.serving.serving" in parameters["operations"],
    )


def _deploys(parameters: dict[str, Any]) -> bool:
    """Return whether pyinfra runs deploy files, whatever their names are."""
    operations = parameters["operations"]
    return bool(operations) and all(name.endswith(".py") for name in operations)


def _or_exit(step: Callable[[], object]) -> None:
    try:
        step()
    except UserError as error:
        click.echo(click.style("--> ", fg="red") + str(error), err=True)
        sys.exit(2)


def _planned_by_pyinfra(
    inventory: Inventory,
    limit: Sequence[str] | None,
    invocation: Invocation,
    parameters: dict[str, Any],
) -> list[Run]:
    """Return the requested run; an ad-hoc command or fact needs no plan and no run."""
    operations = parameters["operations"]
    planned = _deploys(parameters) or (operations and operations[0].startswith("roles."))
    confirmed = parameters["yes"] or parameters["dry"] or parameters["json_output"]
    chosen = {"limit": invocation.limit, "exclude": invocation.exclude}
    Problems(command_line.choice_problems(invocation.inventory, named(inventory), chosen)).stop()
    if not planned:
        return []
    if not (confirmed or sys.stdin.isatty()):
        problem = "pyinfra prompts for a confirmation, but there is no terminal for the answer"
        raise refusal("command line", problem, "add --yes, or --dry to change nothing")
    return [plan(inventory, limit, invocation)]


def named(inventory: Inventory) -> list[HostInput]:
    """Return the hosts of an inventory and their groups, without data."""
    return [HostInput(host.name, {}, str, frozenset(("all", *host.groups))) for host in inventory]


def _planned(inventory: Inventory, hosts: dict[str, Host], invocation: Invocation) -> Run:
    everyone = {host.name: host.data.dict() for host in inventory}
    with_data = [group for group, data in inventory.group_data.items() if data]
    inputs = {
        host.name: HostInput(
            host.name,
            everyone[host.name],
            partial(_origin, inventory, host, invocation.inventory),
            frozenset(("all", *host.groups)),
        )
        for host in inventory
    }
    fleet = desired_fleet(
        [inputs[name] for name in hosts],
        everyone,
        [
            *command_line.group_problems(named(inventory), with_data, Path(invocation.inventory)),
            *(left_out(hosts, everyone) if invocation.switches else ()),
        ],
        others=[given for name, given in inputs.items() if name not in hosts],
        dry=not invocation.makes_secrets,
        resolves=invocation.resolves,
        commands=invocation.resolves and not invocation.planless,
    )
    violations = [finding for host in fleet.hosts.values() for finding in host.violations]
    if violations:
        click.echo(text(violations, paint=paint), err=True)
    secret = secrets.api_key(".sparkwright/peer_secret", {}, dry=not invocation.makes_secrets)
    return _run(hosts, invocation, fleet, RunKeys(secret), everyone=everyone)


def unplanned(hosts: dict[str, Host], invocation: Invocation, why: str) -> Run:
    """Return a run of hosts without a plan.

    Args:
        why: the plan's fault.
    """
    fleet = unplanned_fleet({name: host.data.dict() for name, host in hosts.items()})
    return _run(hosts, invocation, fleet, THIS_PROCESS, why)


def _run(
    hosts: dict[str, Host],
    invocation: Invocation,
    fleet: DesiredFleet,
    keys: RunKeys,
    broken: str | None = None,
    everyone: Iterable[str] = (),
) -> Run:
    rollout = Rollout(batches(list(hosts), fleet.rollout))
    for name, host in hosts.items():
        memory(host).batch = rollout.place(name) if invocation.switches else ""
    return Run(
        inventory=invocation.inventory,
        hosts={
            name: HostRun(
                name=name,
                memory=memory(hosts[name]),
                address=lan_address(name, hosts[name].data.dict()),
                plan_known=broken is None,
                **vars(desired),
            )
            for name, desired in fleet.hosts.items()
        },
        peer_keys=keys,
        rollout=rollout,
        rollout_settings=fleet.rollout,
        dry=invocation.dry,
        broken=broken,
        everyone=frozenset(everyone),
    )


def _origin(inventory: Inventory, host: Host, filename: str, key: str) -> str:
    """Return the file that sets a host's key, in pyinfra's own order of precedence."""
    if key in inventory.get_override_data():
        return "--data"
    if key in inventory.get_host_data(host.name):
        return filename
    for group in reversed(host.groups):
        if key in inventory.get_group_data(group):
            return f"group_data/{group}.py"
    return "group_data/all.py" if key in inventory.get_data() else filename

"""Services on a host: releases, units and the running containers. Only changed services restart."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import HostError
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import entry, laid_out, source
from sparkwright.host import boot_caches, service_firewall
from sparkwright.host.observe import Observation, ObservationRequest, ServiceState
from sparkwright.host.proxy.pool import ProxyRequest
from sparkwright.host.ranks import rank
from sparkwright.host.release import ServiceSwitch, SwitchJournal
from sparkwright.host.service import FORMAT, Service
from sparkwright.operations.files import show
from sparkwright.operations.lib.changing import Commands, change, operation
from sparkwright.operations.lib.switching import RECOVERY, recover, switch, why
from sparkwright.plan.changes import (
    Secrets,
    active_of,
    changes,
    former,
    restarts,
    runs_instead,
    unmanaged_containers,
)

#: Function that carries out a host's switch, perhaps later or not at all.
Turn = Callable[[Host, Callable[[Host], SwitchJournal]], SwitchJournal]
#: Function called with the services of a switch and its result.
Ended = Callable[[Sequence[ServiceSwitch], SwitchJournal], None]
#: Longest time in seconds to watch a release that was good on this host before.
PROVED_SOAK = 10.0


@operation()
def running(
    services: Sequence[Service],
    secrets: Secrets,
    *,
    proxies: Callable[[], ProxyRequest | None] = lambda: None,
    turn: Turn | None = None,
    ended: Ended | None = None,
) -> Commands:
    """Run services as desired; go back to the previous release if smoke tests fail.

    The host changes all services in one transaction: it writes differing files, stops and starts
    changed services, tests them with real requests and observes them for a while. The host returns
    a failing service to its last good release.

    Args:
        services: all services of the host (``host_run.services``).
        secrets: texts of the 0600 files with the services' keys, by path (``host_run.secrets``).
        proxies: the part of the host's proxies that changes with the switch.
        turn: function that waits for the host's turn, if hosts are switched one after the other.
        ended: function called with the result.

    **Example:**

    .. code:: python

        services.running(services=(), secrets={})
    """
    host = ctx_host.get()
    root = memory(host).services_root
    state = observed(host, request_of(services, root)) if services else None
    todo = [
        (service, faults)
        for service in services
        if state and (faults := changes(service, secrets, state))
    ]
    if state and (refusal := other_format(state)):
        raise HostError(refusal)
    _show([service for service, _ in todo], root)
    pending = [f"service {service.name}: {', '.join(faults)}" for service, faults in todo]

    def act(host: Host) -> Sequence[str]:
        assert state is not None
        wanted = to_desired(todo, secrets, state)

        def carry_out(host: Host) -> SwitchJournal:
            return switch(
                host, wanted, active=active_of(services, state),
                unmanaged=unmanaged_containers(services, state), proxies=proxies(),
            )  # fmt: skip

        result = _switched(host, wanted, carry_out, turn, ended)
        return [*pending, f"down for {result.down_seconds:.1f} s"] if turn else pending

    yield from change(
        pending, act,
        otherwise="every service runs as desired" if services else "this host has no service",
    )  # fmt: skip


@operation()
def switched_back(
    targets: Callable[[], Sequence[ServiceSwitch]],
    *,
    turn: Turn | None = None,
    ended: Ended | None = None,
) -> Commands:
    """Switch services to releases that the host still has, proved like any other switch.

    Args:
        targets: function that returns switches made by ``to_release``; empty for no change. The
            function is called when the operation runs.
        turn, ended: same as for ``running``.

    **Example:**

    .. code:: python

        services.switched_back(targets=lambda: [])
    """
    todo = list(targets())
    pending = [
        ", ".join([f"service {each.name}: {each.from_release} back to {each.to}", *each.why[1:]])
        for each in todo
    ]

    def act(host: Host) -> Sequence[str]:
        result = _switched(host, todo, lambda host: switch(host, todo), turn, ended)
        return [*pending, f"down for {result.down_seconds:.1f} s"]

    yield from change(pending, act, otherwise="every service already runs this release")


def _switched(
    host: Host,
    services: Sequence[ServiceSwitch],
    carry_out: Callable[[Host], SwitchJournal],
    turn: Turn | None,
    ended: Ended | None,
) -> SwitchJournal:
    result = turn(host, carry_out) if turn else carry_out(host)
    if ended:
        ended(services, result)
    if result.result != "good":
        raise HostError(why(result))
    return result


def _show(services: Sequence[Service], root: str) -> None:
    """Show the files of releases beside the running releases' files, with ``--diff``."""
    files: dict[str, tuple[str, int]] = {}
    former: dict[str, str] = {}
    for service in services:
        texts = {
            f"{service.directory}/compose.yaml": (service.compose, 0o640),
            service.unit_path: (service.unit_text, 0o644),
            **programs_of(service),
            **service.mounted,
        }
        current = f"{service.home}/current"
        former |= {path: path.replace(service.directory, current) for path in texts}
        files |= texts
    if files:
        files[RECOVERY] = (recover(root), 0o644)
    show(files, former)


def request_of(services: Sequence[Service], services_root: str) -> ObservationRequest:
    """Request for the observation of these services."""
    return ObservationRequest(
        services_root=services_root,
        services={each.name: each.release for each in services},
        ports=tuple(port for each in services for port in each.ports),
    )


def other_format(observed: Observation) -> str | None:
    """Return the reason why a host's services stay unchanged: another version of sparkwright wrote
    them.
    """
    formats = {name: state.format for name, state in observed.services.items()}
    names = [name for name, kept in formats.items() if kept not in (None, FORMAT)]
    remedy = (
        "another version of sparkwright deployed this host: run sparkwright remove "
        "--no-bootstrap (weights stay), then deploy"
    )
    return f"{', '.join(names)}: {remedy}" if names else None


def to_desired(
    todo: Sequence[tuple[Service, list[str]]], secrets: Secrets, state: Observation
) -> list[ServiceSwitch]:
    """Return the switches of services to their desired releases, with their differences."""
    switches = []
    for service, faults in todo:
        there = state.services.get(service.name, ServiceState())
        sleeps = runs_instead(service, state) is not None
        slept = sleeps and not restarts(faults)
        back = former(there, service.release) or (there.current if sleeps and not slept else None)
        keys = (service.secrets, service.rank_secrets)
        files = {
            f"{service.directory}/boot_caches.py": (source(boot_caches), 0o640),
            **programs_of(service),
            **service.mounted,
            **{path: (secrets[path].value, 0o400) for path in service.tokens.values()},
            **{path: (secrets[path].value, 0o600) for path in keys if path in secrets},
        }
        restart = restarts(faults) and not service.follower
        record = replace(service, contents={})
        switches.append(ServiceSwitch(record, back, tuple(faults), restart, sleeps, slept, files))
    return switches


def programs_of(service: Service) -> dict[str, tuple[str, int]]:
    """The program of a cluster's rank, or of a bridge's firewall; empty for any other service."""
    program = rank if service.rank else service_firewall
    if not service.rank and not service.bridge:
        return {}
    name = f"{program.__name__.rpartition('.')[2]}.py"
    texts = laid_out(service.directory, program) | {
        f"{service.directory}/{name}": entry(service.directory, program)
    }
    return {path: (text, 0o640) for path, text in texts.items()}


def to_release(
    now: Service, to: Service, back: str | None, reason: str, *, proved: bool = False
) -> ServiceSwitch:
    """Return a switch of a service to a release that the host still has.

    Args:
        now: the planned or running service, which determines how to switch; the release does not.
        to: the release's record.
        back: the release that runs.
        proved: whether this host served the release well before: then the release is observed for a
            short time.
    """
    soak = min(now.soak_seconds, PROVED_SOAK) if proved else now.soak_seconds
    short = (f"the release was good here before: watched for {soak:.0f} s",) if proved else ()
    switched = replace(to, pool=now.pool, soak_seconds=soak, second_boot=now.second_boot)
    return ServiceSwitch(switched, back, (reason, *short), restart=True)

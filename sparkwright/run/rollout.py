"""Roll-out and rollback: switches in batches until the first failure, with all ranks of a cluster
together; target releases of services, and results.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from pyinfra.api.host import Host

from sparkwright.checks.smoke.result import Smoke
from sparkwright.facts.asking import HostError
from sparkwright.facts.observation import observe_anew
from sparkwright.host.observe import ServiceState
from sparkwright.host.proxy.pool import ProxyRequest
from sparkwright.host.release import FAILED, GOOD, ServiceSwitch, SwitchJournal
from sparkwright.host.status import HostStatus
from sparkwright.operations import proxies, services
from sparkwright.operations.lib.switching import why
from sparkwright.operations.services import to_release
from sparkwright.plan.changes import changes, runs_instead
from sparkwright.plan.rollout import behind_another_proxy, earlier
from sparkwright.results.run_summary import Outcome
from sparkwright.run.observation import services_of, status_of, unreadable
from sparkwright.run.state import HostRun, Run, refuse, run_of, set_aside

Switch = Callable[[Host], SwitchJournal]


def named(run: Run) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the hosts of every batch of this run."""
    every = run.rollout.batches
    for n, names in enumerate(every, 1):
        few = ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"
        yield f"Batch {n} of {len(every)} ({few})", names


def in_turn(host: Host, switch: Switch, *, left: Callable[[], None]) -> SwitchJournal:
    """Switch a host in its batch, unless the roll-out has stopped.

    Args:
        left: function to call if the roll-out stops before the host's batch.

    Raises:
        HostError: the roll-out stops before the host's batch, or the connection to the host is
            lost.
    """
    run = run_of(host)
    rollout, settings = run.rollout, run.rollout_settings
    if not rollout.began and settings.unprepared == "stop":
        unprepared = [name for name, item in run.hosts.items() if item.memory.failure]
        if unprepared:
            rollout.stop(f"{', '.join(unprepared)} could not be prepared")
    # A host in maintenance is not switched, and does not stop the roll-out.
    canaries = [name for name in rollout.batches[0] if run.hosts[name].left is None]
    if settings.canaries and canaries and host.name not in rollout.batches[0]:
        lost = [name for name in canaries if run.hosts[name].memory.failure]
        if len(lost) == len(canaries):
            rollout.stop(f"no canary could be tried ({', '.join(lost)})")
    if not rollout.stopped:
        time.sleep(rollout.wait(host.name, settings.pause_seconds, time.monotonic()))
    if rollout.stopped:
        left()
        raise HostError(f"not switched, since {rollout.stopped}")
    rollout.began = True
    try:
        ended = switch(host)
    except HostError as error:
        rollout.stop(f"{host.name} can't be followed any more: {str(error).splitlines()[0]}")
        raise
    rollout.ended_at = time.monotonic()
    if ended.result != "good":
        rollout.stop(f"{host.name} failed: {ended.reasons[0]}")
    return ended


def with_ranks(
    host: Host, switch: Switch, *, turn: Callable[[Host, Switch], SwitchJournal] | None = None
) -> SwitchJournal:
    """Switch a host if all other ranks of its clusters are ready to follow.

    Args:
        turn: function that switches the host in its turn, if hosts are switched one after the
            other.

    Raises:
        HostError: another rank is not ready; the host stays unchanged.
    """

    def whole(host: Host) -> SwitchJournal:
        run = run_of(host)
        if why := apart(run, run.hosts[host.name]):
            problem = "not switched: the ranks of a cluster are switched together, and"
            raise HostError(f"{problem} {why}")
        return switch(host)

    return turn(host, whole) if turn else whole(host)


def apart(run: Run, host_run: HostRun) -> str | None:
    """Return why the followers can't switch together with their head; None if they can."""
    ranks = [service.rank for service in host_run.desired.plan.services]
    heads = [rank for rank in ranks if rank is not None and rank.head]
    absent = {name for rank in heads for name in rank.hosts if name not in run.hosts}
    away = dict.fromkeys(absent, "is not part of this run")
    for name, other in run.hosts.items():
        if other.memory.failure is not None:
            away[name] = f"failed: {other.memory.failure.splitlines()[0]}"
        elif other.left is not None:
            away[name] = other.left
    lost = ((name, rank) for rank in heads for name in rank.hosts if name in away)
    return next((f"{name} of cluster {rank.cluster} {away[name]}" for name, rank in lost), None)


def proxies_of(host_run: HostRun) -> ProxyRequest | None:
    """Return the changes to the host's proxies for a switch of its services."""
    return proxies.switched(
        host_run.proxies, host_run.proxy_files, host_run.observed, host_run.settings.services_root
    )


def asleep(host_run: HostRun) -> set[str]:
    """Return the sleeping exclusive services, and record them for the report."""
    resting = [each for each in host_run.services if runs_instead(each, host_run.observed)]
    for service in resting:
        outcome = Outcome("sleeps", service.release, service.image)
        host_run.outcomes.setdefault(service.name, outcome)
    return {service.name for service in resting}


def leave(host_run: HostRun) -> None:
    """Record that the host's batch is skipped, so that its services stay unchanged."""
    for service in host_run.services:
        state = host_run.observed.services.get(service.name, ServiceState())
        if changes(service, host_run.secrets, host_run.observed):
            image = state.container.image if state.container else None
            host_run.outcomes[service.name] = Outcome("left", state.current, image)


def elsewhere(run: Run, host_run: HostRun) -> bool:
    """Return whether a service of the host runs a release other than planned.

    The outcome of the host decides; for a follower, the outcome of its head.
    """
    for service in host_run.services:
        head = run.hosts.get(service.rank.hosts[0]) if service.rank and service.follower else None
        outcome = (head or host_run).outcomes.get(service.name)
        if (outcome and outcome.state != "sleeps") or (head and head.memory.failure is not None):
            return True
    return False


def remember(
    host_run: HostRun,
    services: Sequence[ServiceSwitch],
    ended: SwitchJournal,
    run: Run | None = None,
) -> None:
    """Record the end of a switch for the report and for a later rollback of the fleet.

    Args:
        run: the run of a roll-out, in which hosts switched before a failure may also be rolled
            back.
    """
    if ended.result != "good":
        record(host_run, services, ended)
    elif run is not None:
        run.rollout.switched[host_run.name] = {
            service.name: service.from_release
            for service in services
            if service.from_release and not service.sleeps
        }


def to_take_back(host: Host, run: Run, host_run: HostRun) -> list[ServiceSwitch]:
    """Return the services to roll back for ``on_failure = "fleet"``: services switched on this host
    before another host failed.

    Raises:
        HostError: the host does not answer, or lacks the record of a release.
    """
    before = run.rollout.switched.get(host_run.name)
    if not run.rollout.stopped or not before:
        return []
    seen = status_of(host, host_run, texts=False).services
    service_switches = []
    for service in host_run.services:
        if back := before.get(service.name):
            kept = seen[service.name].releases.get(back) if service.name in seen else None
            if kept is None or kept.service is None:
                raise HostError(f"release {back} of {service.name} no longer exists")
            service_switches.append(
                to_release(service, kept.service, service.release, run.rollout.stopped)
            )
    return service_switches


def remember_taken_back(
    run: Run, host_run: HostRun, services: Sequence[ServiceSwitch], ended: SwitchJournal
) -> None:
    """Record that the host runs its previous release instead of the planned release.

    Raises:
        HostError: always, since the host is not as planned.
    """
    if ended.result in ("good", "failed"):
        record(host_run, services, ended, good="taken back")
    if ended.result == "good":
        raise HostError(f"rolled back, since {run.rollout.stopped}")
    raise HostError(f"could not be rolled back: {why(ended)}")


def record(
    host_run: HostRun, services: Sequence[ServiceSwitch], ended: SwitchJournal, *, good: str = ""
) -> None:
    """Record the services' releases after a switch with an unplanned end.

    The release is the target release for services that were rolled back, otherwise the previous
    release.

    Args:
        good: state of the services if the switch succeeded.
    """
    state = good if ended.result == GOOD else ended.result or FAILED
    for service in services:
        if service.sleeps:
            continue  # the release was written, but not started
        checks = ended.checks.get(service.name)
        # Hosts are not observed without a valid plan.
        before = host_run.memory.observation
        seen = before.services.get(service.name) if before else None
        container = seen.container if seen else None
        runs = service.to if ended.result == GOOD else service.from_release
        runs = runs if state != "failed" else None
        host_run.outcomes[service.name] = Outcome(
            state=state,
            release=runs,
            image=container.image if container and container.release == runs else None,
            smoke=Smoke.of(checks) if checks and state != "failed" else None,
        )


def rollback(
    host: Host, host_run: HostRun, _: dict[str, None], *, to: str | None,
    chosen: Callable[[str], Collection[str] | None],
) -> None:  # fmt: skip
    """Switch each service to its previous release, or to a given release, in batches.

    Args:
        to: a release that the host still has.
        chosen: function that returns the names of a host's selected services; None for all
            services.
    """
    targets = targets_of(host, host_run, to=to, only=chosen(host.name))
    if targets is None:
        return
    for title, names in host.loop(named(run_of(host))):
        services.switched_back(
            name=f"Rollback: {title}",
            targets=partial(list, targets if host.name in names else []),
            turn=partial(in_turn, left=lambda: None),
            ended=partial(record, host_run, good="rolled back"),
        )


def targets_of(
    host: Host, host_run: HostRun, *, to: str | None, only: Collection[str] | None
) -> list[ServiceSwitch] | None:
    """Return the switches to earlier releases; None if the host is refused or in maintenance.

    Args:
        to: target release; None for the previous release.
        only: names of services; None for all services.
    """
    try:
        if host_run.plan_known:
            observe_anew(host, host_run.request)
        answer = status_of(host, host_run, texts=False)
        if set_aside(host, answer.maintenance, answer.now):
            return None
        return _targets(host_run, answer, to, only)
    except HostError as error:
        refuse(host, str(error))
        return None


def _targets(
    host_run: HostRun, answer: HostStatus, to: str | None, only: Collection[str] | None
) -> list[ServiceSwitch]:
    def meant(name: str) -> bool:
        return only is None or name in only

    services = {
        name: service
        for name, service in services_of(host_run, answer).items()
        if meant(name) and not service.follower
    }
    problems = [
        f"service {name} was never started here"
        for name in (services if host_run.plan_known else only or ())
        if name not in answer.services
    ]
    problems += [
        f"the record of service {name} is damaged or belongs to another version of sparkwright"
        for name in ([] if host_run.plan_known else unreadable(host_run, answer))
        if meant(name)
    ]
    service_switches = []
    for name, now in services.items():
        if (seen := answer.services.get(name)) is None:
            continue
        kept = {release: release_record.at for release, release_record in seen.releases.items()}
        history = [entry for entry in answer.history if entry.service == name]
        target = to or earlier(seen.current, kept, history)
        record = seen.releases[target].service if target in kept else None
        if target is None:
            problems.append(f"service {name} has no earlier release here")
        elif target not in kept:
            releases = ", ".join(sorted(kept))
            problems.append(f"service {name} has no release {target} here; there are {releases}")
        elif record is None:
            problems.append(f"release {target} of {name} has no expected answers to test against")
        elif why := behind_another_proxy(
            name, target, was=record.gate.proxy is not None, planned=now.gate.proxy is not None
        ):
            problems.append(why)
        elif target != seen.current:
            service_switches.append(
                to_release(
                    now, record, str(seen.current), "rolled back by request",
                    proved=any(entry.to == target and entry.result == GOOD for entry in history),
                )
            )  # fmt: skip
    problems += [
        f"service {each.name} sleeps while {answer.sleeping[each.name]} runs: activate it first"
        for each in service_switches
        if each.name in answer.sleeping
    ]
    if problems:
        raise HostError("; ".join(problems))
    return service_switches

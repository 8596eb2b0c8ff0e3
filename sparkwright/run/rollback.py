"""Which release each service of a host goes back to, decided before any of them is touched."""

from functools import partial

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError
from sparkwright.facts.observation import observe_anew
from sparkwright.host.release import ServiceSwitch
from sparkwright.host.status import HostStatus
from sparkwright.operations import services
from sparkwright.operations.services import to_release
from sparkwright.plan.rollout import behind_another_proxy, earlier
from sparkwright.run import batches, rollout
from sparkwright.run.observation import services_of, status_of, unreadable
from sparkwright.run.state import HostRun, refuse, run_of, set_aside


def rollback(
    host: Host, one: HostRun, _: dict[str, None], *, to: str | None, service: str | None
) -> None:
    """Switch each service to the release before, or to a given release, in batches.

    Args:
        to: a release that the host still has.
        service: only this one.
    """
    targets = targets_of(host, one, to=to, service=service)
    if targets is None:
        return
    for title, names in host.loop(batches.named(run_of(host))):
        services.switched_back(
            name=f"Rollback: {title}",
            targets=partial(list, targets if host.name in names else []),
            turn=partial(batches.in_turn, left=lambda: None),
            ended=partial(rollout.remember_rolled_back, one),
        )


def targets_of(
    host: Host, one: HostRun, *, to: str | None, service: str | None
) -> list[ServiceSwitch] | None:
    """The switches to earlier releases; None when the host is refused, or in maintenance.

    Args:
        to: a release to go to; the one before without.
        service: only this one; every one without.
    """
    try:
        if one.plan_known:
            observe_anew(host, one.request)
        answer = status_of(host, one, texts=False)
        if set_aside(host, answer.maintenance, answer.now):
            return None
        return _targets(one, answer, to, service)
    except HostError as error:
        refuse(host, str(error))
        return None


def _targets(
    one: HostRun, answer: HostStatus, to: str | None, service: str | None
) -> list[ServiceSwitch]:
    services = services_of(one, answer)
    problems: list[str] = []
    if not one.plan_known:
        if service is not None and service not in answer.services:
            problems.append(f"service {service} was never started here")
        problems += [
            f"the record of service {name} is damaged or of another version of sparkwright"
            for name in unreadable(one, answer)
            if service in (None, name)
        ]
    service_switches = []
    for name, now in services.items():
        if service not in (None, name) or now.follower:
            continue
        seen = answer.services.get(name)
        if seen is None:
            problems.append(f"service {name} was never started here")
            continue
        kept = {release: known.at for release, known in seen.releases.items()}
        history = [entry for entry in answer.history if entry.service == name]
        target = to or earlier(seen.current, kept, history)
        record = seen.releases[target].service if target in kept else None
        if target is None:
            problems.append(f"service {name} has no earlier release here")
        elif target not in kept:
            releases = ", ".join(sorted(kept))
            problems.append(f"service {name} has no release {target} here; there are {releases}")
        elif record is None:
            problems.append(f"release {target} of {name} does not say what it must answer")
        elif why := behind_another_proxy(
            name, target, was=record.gate.proxy is not None, planned=now.gate.proxy is not None
        ):
            problems.append(why)
        elif target != seen.current:
            service_switches.append(
                to_release(now, record, str(seen.current), "rolled back by request")
            )
    problems += [
        f"service {each.name} sleeps while {answer.sleeping[each.name]} runs: activate it first"
        for each in service_switches
        if each.name in answer.sleeping
    ]
    if problems:
        raise HostError("; ".join(problems))
    return service_switches

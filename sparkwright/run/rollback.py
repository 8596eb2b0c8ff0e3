"""Which release each service of a host goes back to, decided before any of them is touched."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api.host import Host

from sparkwright.facts.asking import HostError
from sparkwright.facts.observation import observe_anew
from sparkwright.host.release import ServiceSwitch
from sparkwright.host.status import HostStatus
from sparkwright.operations.services import to_release
from sparkwright.plan.rollout import behind_another_proxy, earlier
from sparkwright.plan.services import DesiredService
from sparkwright.run.installed import installed_in, status_of
from sparkwright.run.state import HostRun, refuse, set_aside
from sparkwright.site.installed import Installed


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


def _follows(
    name: str, planned: Mapping[str, DesiredService], there: Mapping[str, Installed]
) -> bool:
    """Whether the head of its cluster, on another host, says what it goes back to."""
    if name in planned:
        return planned[name].follower
    return name in there and there[name].follower


def _targets(
    one: HostRun, answer: HostStatus, to: str | None, service: str | None
) -> list[ServiceSwitch]:
    planned = {desired.name: desired for desired in one.services}
    there = {} if one.plan_known else installed_in(one, answer)
    if service is not None and not one.plan_known and service not in there:
        raise HostError(f"service {service} was never started here")
    found = []
    wrong = []
    for name in planned if one.plan_known else there:
        if service not in (None, name) or _follows(name, planned, there):
            continue
        seen = answer.services.get(name)
        if seen is None:
            wrong.append(f"service {name} was never started here")
            continue
        kept = {release: known.at for release, known in seen.releases.items()}
        history = [entry for entry in answer.history if entry.service == name]
        target = to or earlier(seen.current, kept, history)
        now = seen.releases.get(seen.current or "")
        pool = planned[name].pool is not None if one.plan_known else bool(now and now.proxy)
        if target is None:
            wrong.append(f"service {name} has no earlier release here")
        elif target not in kept:
            releases = ", ".join(sorted(kept))
            wrong.append(f"service {name} has no release {target} here; there are {releases}")
        elif why := behind_another_proxy(
            name, target, was=seen.releases[target].proxy, planned=pool
        ):
            wrong.append(why)
        elif target != seen.current:
            why = "rolled back by request"
            if one.plan_known:
                found.append(to_release(planned[name], target, str(seen.current), why))
            elif switch := there[name].switch_to(target, why, one.settings.rollout):
                found.append(switch)
            else:
                wrong.append(f"release {target} of {name} does not say what it must answer")
    wrong += [
        f"service {one.name} sleeps while {answer.sleeping[one.name]} runs: activate it first"
        for one in found
        if one.name in answer.sleeping
    ]
    if wrong:
        raise HostError("; ".join(wrong))
    return found

"""Serving: releases, units and the running services, host by host. Only what changed restarts.

A host that serves nothing yet starts at once. A host that serves already is switched in its turn,
canaries first, and goes back by itself when the new release gives no real answers; after that no
further host is switched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyinfra.api.host import Host

from roles import door, remote, site, steps
from roles.serving import turns
from roles.serving.state import changes, rolls
from roles.serving.switch import or_raise, remember, switch, to_plan, to_release, why
from sparkwright.report.run import Outcome


def serving() -> None:
    """Put each service's release in place and have it run."""
    steps.step("Serving: hosts that serve nothing yet", _at_once, _start)
    for name, names in turns.each():
        steps.step(name, partial(_in_turn, names), _take_turn)
    if site.rollout_settings().on_failure == "fleet":
        steps.together("Serving: take back what was switched", _take_back)


def _pending(run: site.HostRun) -> list[str]:
    return [
        f"service {release.service.name}: {', '.join(found)}"
        for release in run.wanted.releases
        if (found := changes(run, release))
    ]


def _at_once(run: site.HostRun) -> Sequence[str]:
    return [] if rolls(run) else _pending(run)


def _in_turn(names: list[str], run: site.HostRun) -> Sequence[str]:
    return _pending(run) if run.plan.host in names and rolls(run) else []


def _start(host: Host, run: site.HostRun) -> Sequence[str]:
    services = to_plan(run)
    ended = switch(host, run, services)
    or_raise(run, services, ended)
    return _pending(run)


def _take_turn(host: Host, run: site.HostRun) -> Sequence[str]:
    services = to_plan(run)
    ended = turns.take(
        host, run, lambda: switch(host, run, services, door.switched(run)), left=lambda: _leave(run)
    )
    or_raise(run, services, ended)
    site.rollout().switched[host.name] = {
        service["name"]: service["from"] for service in services if service["from"]
    }
    return [*_pending(run), f"down for {ended.down_seconds:.1f} s"]


def _leave(run: site.HostRun) -> None:
    for release in run.wanted.releases:
        state = run.seen.services[release.service.name]
        if changes(run, release):
            run.outcomes[release.service.name] = Outcome(
                "left", state.current, state.container.image if state.container else None
            )


def _take_back(host: Host, run: site.HostRun) -> Sequence[str]:
    """``on_failure = "fleet"``: the hosts that were switched before the failure go back too."""
    rollout = site.rollout()
    before = rollout.switched.get(host.name)
    if not rollout.stopped or not before:
        return []
    services: list[dict[str, Any]] = []
    for release in run.wanted.releases:
        name = release.service.name
        if back := before.get(name):
            services.append(to_release(run, name, back, release.id, rollout.stopped))
    ended = switch(host, run, services)
    if ended.result == "good":
        remember(run, [{**one, "from": one["to"]} for one in services], ended, "taken back")
        raise remote.HostError(f"taken back, since {rollout.stopped}")
    if ended.result == "failed":
        remember(run, services, ended, "failed")
    raise remote.HostError(f"could not be taken back: {why(ended)}")


__all__ = ["changes", "serving"]

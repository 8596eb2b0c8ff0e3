"""Services on a host: releases, units and the running containers. Only what changed restarts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import HostError
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import entry, laid_out, source
from sparkwright.host import boot_caches
from sparkwright.host.lib.records import encode
from sparkwright.host.observation import Observation, ObservationRequest, ServiceAt, ServiceState
from sparkwright.host.proxy.pool import ProxySwitch
from sparkwright.host.ranks import rank
from sparkwright.host.release import ServiceSwitch
from sparkwright.host.service import FORMAT, Service
from sparkwright.operations.changing import SERVICES_ROOT, Commands, change, operation, show_diff
from sparkwright.operations.switching import SwitchResult, switch
from sparkwright.plan.changes import (
    Secrets,
    active_of,
    changes,
    former,
    restarts,
    runs_instead,
    unmanaged_containers,
)

#: Given a host and its switch, carries it out, perhaps later or not at all.
Turn = Callable[[Host, Callable[[Host], SwitchResult]], SwitchResult]
#: Called with how a switch of these services ended.
Ended = Callable[[Sequence[ServiceSwitch], SwitchResult], None]


@operation()
def running(
    services: Sequence[Service],
    secrets: Secrets,
    *,
    services_root: str = SERVICES_ROOT,
    proxies: Callable[[], ProxySwitch | None] | None = None,
    turn: Turn | None = None,
    ended: Ended | None = None,
    break_lock: bool = False,
) -> Commands:
    """Have services run as desired, proved by real answers; else what ran before runs again.

    One transaction on the host, for all services together: what is not as desired is written, what
    changed is stopped and started, tested with real requests and observed for a while. A service
    that fails goes back to its last good release by itself.

    Args:
        services: all services of the host (``sparkwright.host.service.Service``).
        secrets: texts of the 0600 files with their keys, by path.
        services_root: where services, state and the host's lock lie.
        proxies: what of the host's proxies changes with the switch.
        turn: when the switch may happen, where hosts are switched one after the other.
        ended: called with how it ended.
        break_lock: whether to take the lock from another run.

    **Example:**

    .. code:: python

        services.running(services=[Service(name="chat", ...)])
    """
    host = ctx_host.get()
    seen = observed(host, request_of(services, services_root)) if services else None
    todo = [(one, found) for one in services if seen and (found := changes(one, secrets, seen))]
    if seen and (refusal := other_format(seen)):
        raise HostError(refusal)
    for one, _ in todo:
        _show_diff(one, host)

    def act(host: Host) -> Sequence[str]:
        assert seen is not None
        wanted = to_desired(todo, secrets, seen)

        def carry_out(host: Host) -> SwitchResult:
            return switch(
                host, services_root, wanted, active=active_of(services, seen),
                unmanaged=unmanaged_containers(services, seen),
                proxies=proxies() if proxies else None,
            )  # fmt: skip

        result = turn(host, carry_out) if turn else carry_out(host)
        if ended:
            ended(wanted, result)
        if result.result != "good":
            raise HostError(result.why())
        down = [f"down for {result.down_seconds:.1f} s"] if turn else []
        return [*_pending(todo), *down]

    yield from change(
        _pending(todo), act, services_root=services_root, break_lock=break_lock,
        otherwise="every service runs as desired" if services else "no service of this host",
    )  # fmt: skip


@operation()
def switched_back(
    targets: Callable[[], Sequence[ServiceSwitch]],
    *,
    services_root: str = SERVICES_ROOT,
    turn: Turn | None = None,
    ended: Ended | None = None,
    break_lock: bool = False,
) -> Commands:
    """Switch services to releases that the host still has, proved as any other switch.

    Args:
        targets: as ``to_release`` makes them; none for nothing. Called when the operation runs.
        services_root, turn, ended, break_lock: as for ``running``.
    """
    todo = list(targets())
    pending = [f"service {one.name}: {one.from_release} back to {one.to}" for one in todo]

    def act(host: Host) -> Sequence[str]:
        def carry_out(host: Host) -> SwitchResult:
            return switch(host, services_root, todo)

        result = turn(host, carry_out) if turn else carry_out(host)
        if ended:
            ended(todo, result)
        if result.result != "good":
            raise HostError(result.why())
        return [*pending, f"down for {result.down_seconds:.1f} s"]

    yield from change(
        pending, act, services_root=services_root, break_lock=break_lock,
        otherwise="every service runs that release",
    )  # fmt: skip


def request_of(services: Sequence[Service], services_root: str) -> ObservationRequest:
    """What has to be observed of these services."""
    return ObservationRequest(
        services_root=services_root,
        services=tuple(ServiceAt(each.name, each.release) for each in services),
        ports=tuple(port for each in services for port in each.ports),
    )


def other_format(observed: Observation) -> str | None:
    """Why a host's services are left alone: another version of sparkwright wrote them."""
    names = [
        name
        for name, state in observed.services.items()
        if state.format is not None and state.format != FORMAT
    ]
    if not names:
        return None
    return (
        f"{', '.join(names)}: another version of sparkwright deployed this host: run sparkwright "
        "remove (weights stay), then deploy"
    )


def to_desired(
    todo: Sequence[tuple[Service, list[str]]], secrets: Secrets, seen: Observation
) -> list[ServiceSwitch]:
    """A switch of services to their desired releases, with their differences."""
    found = []
    for service, why in todo:
        state = seen.services.get(service.name, ServiceState())
        sleeps = runs_instead(service, seen) is not None
        slept = sleeps and not restarts(why)
        back = former(state, service.release) or (state.current if sleeps and not slept else None)
        found.append(
            ServiceSwitch(
                service=service,
                from_release=back,
                why=tuple(why),
                restart=restarts(why) and not service.follower,
                sleeps=sleeps,
                slept=slept,
                files={
                    f"{service.directory}/boot_caches.py": (source(boot_caches), 0o640),
                    **_rank_files(service),
                    **{
                        path: (secrets[path].value, 0o600)
                        for path in (service.secrets, service.rank.secrets if service.rank else "")
                        if path in secrets
                    },
                },
            )
        )
    return found


def _rank_files(service: Service) -> dict[str, tuple[str, int]]:
    """The program of a cluster's rank, and its configuration; none for a service of one host."""
    if service.rank is None:
        return {}
    place = service.directory
    found = {path: (text, 0o640) for path, text in laid_out(place, rank).items()}
    found[f"{place}/rank.py"] = (entry(place, rank), 0o640)
    found[f"{place}/rank.json"] = (json.dumps(encode(service.rank), indent=1) + "\n", 0o640)
    return found


def to_release(now: Service, to: Service, back: str | None, why: str) -> ServiceSwitch:
    """A switch of a service to a release that the host still has.

    Args:
        now: the service as it is planned, or runs: how it is switched is not the release's.
        to: the release's record.
        back: the release that runs.
    """
    switched = replace(
        to, pool=now.pool, soak_seconds=now.soak_seconds, second_boot=now.second_boot
    )
    return ServiceSwitch(switched, back, (why,), restart=True)


def _pending(todo: Sequence[tuple[Service, list[str]]]) -> list[str]:
    return [f"service {one.name}: {', '.join(found)}" for one, found in todo]


def _show_diff(service: Service, host: Host) -> None:
    """With ``--diff``, compose file and unit against those that run."""
    if not host.state.config.DIFF:
        return
    current = f"{service.home}/current/compose.yaml"
    request = ObservationRequest(texts=(current, service.unit_path))
    texts = observed(host, request).texts
    show_diff(f"{service.name}: compose.yaml", texts.get(current), service.compose)
    show_diff(service.unit_path, texts.get(service.unit_path), service.unit_text)

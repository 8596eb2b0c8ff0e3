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
from sparkwright.host.observation import Observation, ObservationRequest, ServiceState
from sparkwright.host.proxy.pool import ProxySwitch
from sparkwright.host.ranks import rank
from sparkwright.host.release import ServiceSwitch, note_document
from sparkwright.operations.changing import SERVICES_ROOT, Commands, change, operation, show_diff
from sparkwright.operations.switching import SwitchResult, switch
from sparkwright.plan.services import (
    DesiredService,
    active_of,
    changes,
    former,
    restarts,
    unmanaged_containers,
)

#: Given a host and its switch, carries it out, perhaps later or not at all.
Turn = Callable[[Host, Callable[[Host], SwitchResult]], SwitchResult]
#: Called with how a switch of these services ended.
Ended = Callable[[Sequence[ServiceSwitch], SwitchResult], None]


@operation()
def running(
    services: Sequence[DesiredService],
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
        services: all services of the host (``sparkwright.plan.services.DesiredService``).
        services_root: where services, state and the host's lock lie.
        proxies: what of the host's proxies changes with the switch.
        turn: when the switch may happen, where hosts are switched one after the other.
        ended: called with how it ended.
        break_lock: whether to take the lock from another run.

    **Example:**

    .. code:: python

        services.running(services=[DesiredService(name="chat", ...)])
    """
    host = ctx_host.get()
    seen = observed(host, request_of(services, services_root)) if services else None
    todo = [(one, found) for one in services if seen and (found := changes(one, seen))]
    for one, _ in todo:
        _show_diff(one, host)

    def act(host: Host) -> Sequence[str]:
        assert seen is not None
        wanted = to_desired(todo, seen)

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


def request_of(services: Sequence[DesiredService], services_root: str) -> ObservationRequest:
    """What has to be observed of these services."""
    return ObservationRequest(
        services_root=services_root,
        services=tuple(one.place for one in services),
        ports=tuple(port for one in services for port in one.ports),
    )


def to_desired(
    todo: Sequence[tuple[DesiredService, list[str]]], seen: Observation
) -> list[ServiceSwitch]:
    """A switch of services to their desired releases, with what of them is not so."""
    found = []
    for service, why in todo:
        state = seen.services.get(service.name, ServiceState())
        sleeps = service.runs_instead(seen) is not None
        slept = sleeps and not restarts(why)
        back = former(state, service.release) or (state.current if sleeps and not slept else None)
        found.append(
            replace(
                _switch(
                    service,
                    back=back,
                    why=why,
                    restart=restarts(why) and not service.follower,
                ),
                sleeps=sleeps,
                slept=slept,
                files={
                    f"{service.directory}/compose.yaml": (service.compose, 0o640),
                    f"{service.directory}/unit.service": (service.unit_text, 0o640),
                    f"{service.directory}/boot_caches.py": (source(boot_caches), 0o640),
                    **_rank_files(service),
                    # The last one: with it the release is whole.
                    f"{service.directory}/release.json": (
                        json.dumps(note_document(service.note), indent=1) + "\n",
                        0o640,
                    ),
                    service.secrets: (service.environment.value, 0o600),
                },
            )
        )
    return found


def _rank_files(service: DesiredService) -> dict[str, tuple[str, int]]:
    """The program of a cluster's rank, and what it goes by; none for a service of one host."""
    if service.rank is None:
        return {}
    place = service.directory
    found = {path: (text, 0o640) for path, text in laid_out(place, rank).items()}
    found[f"{place}/rank.py"] = (entry(place, rank), 0o640)
    found[f"{place}/rank.json"] = (json.dumps(encode(service.rank), indent=1) + "\n", 0o640)
    if service.ranks_key and not service.follower:
        # Not beside the API key, which a way back brings back: the followers know the new one.
        found[service.rank.secrets] = (service.ranks_key.value, 0o600)
    return found


def to_release(service: DesiredService, to: str, back: str, why: str) -> ServiceSwitch:
    """A switch of a service to a release that the host still has."""
    one = _switch(service, back=back, why=[why], restart=True)
    return replace(one, to=to, image=None)


def _switch(
    service: DesiredService, *, back: str | None, why: Sequence[str], restart: bool
) -> ServiceSwitch:
    return ServiceSwitch(
        name=service.name,
        home=service.home,
        unit=service.unit,
        unit_path=service.unit_path,
        to=service.release,
        from_release=back,
        image=service.image,
        secrets=service.secrets,
        why=tuple(why),
        restart=restart,
        # With a way back, one crash is enough; without, systemd's three tries are waited for.
        gate=replace(service.gate, fail_fast=back is not None),
        soak_seconds=service.soak_seconds if back else 0.0,
        pool=service.pool,
        second_boot=service.second_boot,
        follower=service.follower,
    )


def _pending(todo: Sequence[tuple[DesiredService, list[str]]]) -> list[str]:
    return [f"service {one.name}: {', '.join(found)}" for one, found in todo]


def _show_diff(service: DesiredService, host: Host) -> None:
    """With ``--diff``, compose file and unit against those that run."""
    if not host.state.config.DIFF:
        return
    current = f"{service.home}/current/compose.yaml"
    request = ObservationRequest(texts=(current, service.unit_path))
    texts = observed(host, request).texts
    show_diff(f"{service.name}: compose.yaml", texts.get(current), service.compose)
    show_diff(service.unit_path, texts.get(service.unit_path), service.unit_text)

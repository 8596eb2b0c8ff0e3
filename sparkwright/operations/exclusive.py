"""Exclusive groups on a host: what it must know of them, and another member activated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.config.settings import HostSettings
from sparkwright.config.templates import template
from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import laid_out
from sparkwright.host import switch as switch_program
from sparkwright.host.exclusive import activate as program
from sparkwright.host.exclusive import on_request as wake_program
from sparkwright.host.exclusive import setup as setup_program
from sparkwright.host.exclusive import unattended as schedule_program
from sparkwright.host.exclusive.activate import ActivateAnswer, ActivateRequest
from sparkwright.host.exclusive.setup import SCHEDULE, SOCKET, TIMER, WAKE, SetupRequest
from sparkwright.host.lib.exclusive import GROUPS, WAKE_SOCKET, Group, Groups
from sparkwright.host.lib.records import encode
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.observation import ObservationRequest
from sparkwright.host.release import GOOD, REVERTED
from sparkwright.host.service import Service
from sparkwright.operations.changing import SERVICES_ROOT, Commands, change, look, operation
from sparkwright.operations.control import SOCKETS
from sparkwright.operations.locks import OWNER
from sparkwright.operations.switching import follow, place, recover, settle
from sparkwright.plan import schedule
from sparkwright.plan.missing import unwritten

#: Text and mode, by path.
Files = Mapping[str, tuple[str, int]]
#: Seconds for the program: it begins a switch, and waits for nothing.
_BEGIN = 60


@operation()
def declared(
    files: Files, *, services_root: str = SERVICES_ROOT, break_lock: bool = False
) -> Commands:
    """Have a host know its exclusive groups, and what activating a member needs.

    Args:
        files: ``files_of`` its services; none for a host without a group.
        services_root: where the host's lock lies.
        break_lock: whether to take the lock from another run.
    """
    seen = observed(ctx_host.get(), request_of(files, services_root))
    pending = unwritten(files, seen)
    pending += [
        f"start {unit}"
        for unit in _triggers(files)
        if seen.units.get(unit, {}).get("ActiveState") != "active"
    ]
    if not files and seen.files.get(_groups(services_root)):
        pending = ["remove the exclusive groups"]

    def act(host: Host) -> Sequence[str]:
        done = ask(host, setup_program, SetupRequest(services_root, dict(files)), tuple[str, ...])
        memory(host).forget()
        return done

    yield from change(
        pending, act, services_root=services_root, break_lock=break_lock,
        otherwise="exclusive groups are as desired" if files else "no exclusive group here",
    )  # fmt: skip


@operation()
def activated(
    request: ActivateRequest,
    *,
    answered: Callable[[ActivateAnswer], None] | None = None,
    unless: Callable[[], str | None] = lambda: None,
    break_lock: bool = False,
) -> Commands:
    """Have another member of an exclusive group run, proved by real answers; else the one before.

    Args:
        request: its ``dry`` only asks.
        answered: called with what became of it, also where something went wrong.
        unless: why it is not to be done after all; None while it is.
        break_lock: whether to take the lock from another run.
    """

    def tell(answer: ActivateAnswer) -> Sequence[str]:
        if answered:
            answered(answer)
        return answer.wrong

    def act(host: Host) -> Sequence[str]:
        if reason := unless():
            raise HostError(reason)
        asked = replace(request, token=OWNER.token)
        answer = ask(host, program, asked, ActivateAnswer, timeout=_BEGIN)
        if answer.switch:
            answer = _followed(host, request.services_root, answer)
        if wrong := tell(answer):
            raise HostError("\n".join(wrong))
        return [f"{request.service}: activated"] if answer.switch else []

    if request.dry:
        yield from look(lambda host: tell(ask(host, program, request, ActivateAnswer)))
        return
    yield from change(
        [f"activate {request.service}"], act, services_root=request.services_root,
        break_lock=break_lock,
    )  # fmt: skip


def _followed(host: Host, services_root: str, answer: ActivateAnswer) -> ActivateAnswer:
    ended = follow(host, services_root)
    memory(host).forget()
    if ended.id != answer.switch:
        raise HostError("another switch came between: run again when it has ended")
    runs = {GOOD: "", REVERTED: f"{answer.was} runs again"}.get(
        ended.result or "", "nothing that is proved runs here now"
    )
    return replace(
        answer,
        result=ended.result,
        down_seconds=ended.down_seconds,
        wrong=(*ended.reasons, runs) if runs else (),
    )


def files_of(services: Sequence[Service], settings: HostSettings) -> dict[str, tuple[str, int]]:
    """What a host must have to switch between exclusive services by itself; none without any."""
    members = {one.exclusive: one.members for one in services if one.exclusive is not None}
    if not members:
        return {}
    services_root = settings.services_root
    by_calendar = schedule.windows(settings)
    known = Groups(
        groups={name: Group(its, by_calendar.get(name, ())) for name, its in members.items()},
        settle=settle(services_root),
        recover=recover(services_root),
        on_request=tuple(one.name for one in services if one.on_request and one.exclusive),
        stay_seconds=settings.activation.stay_seconds,
        wait_seconds=settings.activation.wait_seconds,
        admin=SOCKETS.admin,
    )
    home = place(services_root)
    programs = laid_out(home, program, switch_program, schedule_program, wake_program)
    context = {
        "place": home, "services_root": services_root, "times": schedule.times(settings),
        "socket": WAKE_SOCKET,
    }  # fmt: skip
    units = (
        *((TIMER, SCHEDULE) if by_calendar else ()),
        *((SOCKET, WAKE) if known.on_request else ()),
    )
    return {
        **{path: (text, 0o600) for path, text in programs.items()},
        **{
            f"{UNITS}/{unit}": (
                template(f"exclusive/{unit.removeprefix('sparkwright-')}.j2").render(context),
                0o644,
            )
            for unit in units
        },
        _groups(services_root): (json.dumps(encode(known), indent=1) + "\n", 0o600),
    }


def request_of(files: Files, services_root: str) -> ObservationRequest:
    """What has to be observed of them."""
    return ObservationRequest(
        services_root=services_root,
        files=tuple({**files, _groups(services_root): None}),
        units=_triggers(files),
    )


def _triggers(files: Files) -> tuple[str, ...]:
    """The units that start the others, of those that are wanted."""
    return tuple(unit for unit in (TIMER, SOCKET) if f"{UNITS}/{unit}" in files)


def _groups(services_root: str) -> str:
    return f"{services_root}/state/{GROUPS}"

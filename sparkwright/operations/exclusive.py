"""Exclusive groups on a host: their files, and the activation of another member."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.config.settings import HostSettings
from sparkwright.config.templates import template
from sparkwright.engines import log_patterns
from sparkwright.facts.asking import HostError, ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import laid_out
from sparkwright.host.exclusive import activate as program
from sparkwright.host.exclusive import setup as setup_program
from sparkwright.host.exclusive.activate import ActivateAnswer, ActivateRequest
from sparkwright.host.exclusive.setup import SCHEDULE, SOCKET, TIMER, WAKE, SetupRequest
from sparkwright.host.lib.exclusive import GROUPS, WAKE_SOCKET, Group, Groups
from sparkwright.host.lib.records import encode
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.proxy.pool import ADMIN
from sparkwright.host.release import GOOD, REVERTED
from sparkwright.host.service import Service
from sparkwright.operations.files import Files, unlike
from sparkwright.operations.lib.changing import (
    Commands,
    accept,
    act_by,
    change,
    look,
    operation,
    unheard,
)
from sparkwright.operations.lib.locks import OWNER
from sparkwright.operations.lib.switching import follow, place, recover, settle
from sparkwright.plan import schedule

#: Seconds for the program, which begins a switch without waiting for its end.
_BEGIN = 60


@operation()
def declared(files: Files) -> Commands:
    """Install a host's exclusive groups and the programs that activate a member.

    Args:
        files: files that ``files_of`` makes from the host's services; empty for a host without a
            group.

    **Example:**

    .. code:: python

        exclusive.declared(files={})
    """
    host = ctx_host.get()
    root = memory(host).services_root
    state = observed(host, request_of(files, root))
    pending = unlike(files, _triggers(files), state, _groups(root), "remove the exclusive groups")
    yield from change(
        pending, act_by(setup_program, SetupRequest(root, dict(files))),
        otherwise="exclusive groups are as desired" if files else "no exclusive group",
    )  # fmt: skip


@operation()
def activated(
    request: ActivateRequest,
    *,
    answered: Callable[[ActivateAnswer], object] = unheard,
    unless: Callable[[], str | None] = lambda: None,
) -> Commands:
    """Run another member of an exclusive group; return to the previous member if tests fail.

    Args:
        request: the activation; with ``dry`` the host only reports the effect.
        answered: function called with the result, also after a failure.
        unless: function that returns a reason to skip the activation, or None.

    **Example:**

    .. code:: python

        from sparkwright.operations import ActivateRequest, exclusive

        exclusive.activated(request=ActivateRequest("chat"))
    """

    def act(host: Host) -> Sequence[str]:
        if reason := unless():
            raise HostError(reason)
        asked = replace(request, token=OWNER.token, boot_lines=log_patterns("boot"))
        answer = ask(host, program, asked, ActivateAnswer, timeout=_BEGIN)
        if answer.switch:
            answer = _followed(host, answer)
        accept(answer, answered)
        return [f"{request.service}: activated"] if answer.switch else []

    def ask_only(host: Host) -> Sequence[str]:
        accept(ask(host, program, request, ActivateAnswer), answered)
        return ()

    if request.dry:
        yield from look(ask_only)
        return
    yield from change([f"activate {request.service}"], act)


def _followed(host: Host, answer: ActivateAnswer) -> ActivateAnswer:
    ended = follow(host)
    if ended.id != answer.switch:
        raise HostError("another switch ran meanwhile: run the command again")
    runs = {GOOD: "", REVERTED: f"{answer.was} runs again"}.get(
        ended.result or "", "no proved release runs here now"
    )
    return replace(
        answer,
        result=ended.result,
        down_seconds=ended.down_seconds,
        faults=(*ended.reasons, runs) if runs else (),
    )


def files_of(
    services: Sequence[Service], settings: HostSettings, needs: Mapping[str, float]
) -> dict[str, tuple[str, int]]:
    """Files with which a host switches between exclusive services without a controller, if any.

    Args:
        needs: GiB of memory that services need, as far as the plan has an estimate.
    """
    members = {each.exclusive: each.members for each in services if each.exclusive is not None}
    if not members:
        return {}
    root = settings.services_root
    by_calendar = schedule.windows(settings)
    groups = Groups(
        groups={name: Group(its, by_calendar.get(name, ())) for name, its in members.items()},
        settle=settle(root),
        recover=recover(root),
        on_request=tuple(each.name for each in services if each.activate and each.exclusive),
        stay_seconds=settings.activation.stay_seconds,
        wait_seconds=settings.activation.wait_seconds,
        idle={name: each.idle.seconds for name, each in settings.services.items() if each.idle},
        admin=ADMIN,
        memory={name: round(size, 2) for name, size in needs.items()},
    )
    home = place(root)
    context = {
        "place": home, "services_root": root, "times": schedule.times(settings),
        "socket": WAKE_SOCKET,
    }  # fmt: skip
    units = (
        *((TIMER, SCHEDULE) if by_calendar else ()),
        *((SOCKET, WAKE) if groups.on_request else ()),
    )
    # The import takes 3 ms, and only hosts with a group need it.
    from sparkwright.host import switch
    from sparkwright.host.exclusive import on_request, unattended

    programs = laid_out(home, program, switch, unattended, on_request)
    files = {path: (text, 0o600) for path, text in programs.items()}
    for unit in units:
        text = template(f"exclusive/{unit.removeprefix('sparkwright-')}.j2").render(context)
        files[f"{UNITS}/{unit}"] = (text, 0o644)
    files[_groups(root)] = (json.dumps(encode(groups), indent=1) + "\n", 0o640)
    return files


def request_of(files: Files, services_root: str) -> ObservationRequest:
    """Request for the observation of these files and their units."""
    paths = tuple({**files, _groups(services_root): None})
    return ObservationRequest(files=paths, units=_triggers(files))


def _triggers(files: Files) -> tuple[str, ...]:
    """Return the required units that start other units."""
    return tuple(unit for unit in (TIMER, SOCKET) if f"{UNITS}/{unit}" in files)


def _groups(services_root: str) -> str:
    return f"{services_root}/state/{GROUPS}"

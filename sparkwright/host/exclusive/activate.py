"""Begins a switch to another member of an exclusive group. Runs on the host as root.

The switch itself is a job of systemd's, the one that a deploy starts: it drains and stops what
runs, starts the other, has it give real answers, and goes back where it gives none.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwright.host.control import SWITCH
from sparkwright.host.lib import documents, exclusive, files, homes, systemd
from sparkwright.host.lib.exclusive import Groups
from sparkwright.host.lib.processes import run
from sparkwright.host.lib.records import encode
from sparkwright.host.lock import Owner
from sparkwright.host.release import ServiceSwitch, SwitchRequest
from sparkwright.host.service import current


@dataclass(frozen=True)
class ActivateRequest:
    """A member of a group that is to run.

    Attributes:
        token: of the run that has the host's lock.
        dry: whether it is only said what would be done.
    """

    service: str
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    token: str | None = None
    dry: bool = False


@dataclass(frozen=True)
class ActivateAnswer:
    """What became of it.

    Attributes:
        known: every service of the host that is of a group.
        group: of the service; None where the host has no such service.
        was: the member that ran before.
        switch: id of the switch that was begun; None where there was nothing to do.
        result: good, reverted or failed; None where nothing was switched.
        down_seconds: from the stop of the one to the first healthy answer of the other.
        wrong: what went wrong, or why nothing was done, as lines.
    """

    known: tuple[str, ...] = ()
    group: str | None = None
    was: str | None = None
    switch: str | None = None
    result: str | None = None
    down_seconds: float = 0.0
    wrong: tuple[str, ...] = ()


class Refused(Exception):
    """Why nothing is switched."""


def service_switch(home: Path, why: str, *, sleeps: bool) -> ServiceSwitch | None:
    """One side of the switch, by the release that lies here; None where nothing of it does.

    Args:
        sleeps: whether it is the one that runs now, and is to make room.
    """
    service = current(home)
    if service is None:
        return None
    return ServiceSwitch(
        service=service,
        from_release=service.release if sleeps else None,
        why=(why,),
        restart=True,
        sleeps=sleeps,
        slept=not sleeps,
    )


def planned(
    state: Path, groups: Groups, request: ActivateRequest, group: str, was: str
) -> SwitchRequest:
    """The switch, as a transaction of both.

    Raises:
        Refused: when the host is not in a state to be switched.
    """
    if (mark := homes.maintenance()) is not None:
        raise Refused(f"the host is in maintenance, by {mark.by}")
    holder = documents.record(Owner, state / "lock.json")
    if holder is not None and holder.token != request.token:
        raise Refused(f"{holder.by} is at work on this host")
    if systemd.unit(SWITCH).get("ActiveState") in systemd.RUNNING:
        raise Refused("a switch is under way: wait for its end")
    root = state.parent / "services"
    said = f": {request.why}" if request.why else ""
    new = service_switch(root / request.service, f"activated{said}", sleeps=False)
    if new is None:
        raise Refused(f"{request.service} was never prepared here: deploy first")
    old = service_switch(root / was, f"sleeps for {request.service}{said}", sleeps=True)
    return SwitchRequest(
        id=secrets.token_hex(6),
        by=request.by,
        settle=groups.settle,
        recover=groups.recover,
        services=(new, old) if old else (new,),
        active={group: was},
        activates={group: request.service},
    )


def begin(state: Path, wanted: SwitchRequest) -> None:
    """Have systemd carry it out.

    Raises:
        Refused: with systemd's own words.
    """
    place = state / "switch"
    files.write(place / "request.json", json.dumps(encode(wanted)), 0o600, parents=0o750)
    (place / "progress.json").unlink(missing_ok=True)
    systemd.systemctl("reset-failed", SWITCH)
    done = run(*wanted.settle)
    if not done.ok:
        raise Refused(f"the switch can't be started: {done.said}")


def main(request: ActivateRequest) -> ActivateAnswer:
    """Begin it, unless it is the one that runs; of a name that is of no group nothing is done."""
    state = Path(request.services_root, "state")
    groups, runs = exclusive.groups(state), exclusive.running(state)
    of = {one: group for group, its in groups.groups.items() for one in its.members}
    group = of.get(request.service)
    if group is None:
        return ActivateAnswer(tuple(of))
    answer = ActivateAnswer(tuple(of), group, runs[group])
    if runs[group] == request.service:
        return answer
    try:
        wanted = planned(state, groups, request, group, runs[group])
        if request.dry:
            return answer
        begin(state, wanted)
    except Refused as error:
        return replace(answer, wrong=(str(error),))
    return replace(answer, switch=wanted.id)

"""Exclusive groups of this host: their services, the running service of each, and the sleeping
services."""

import time
from pathlib import Path

from sparkwright.host.lib import documents, files, records, systemd

#: Names of the two files below ``state``.
GROUPS, ACTIVE = "exclusive.json", "active.json"


WAKE_SOCKET = "/run/sparkwright-wake/requests.sock"
#: Last member of a group with ``idle``: active while every service of the group sleeps. No service
#: can have this name.
NOBODY = "(nobody)"


@records.dataclass(frozen=True)
class Group:
    """A group; its first member runs until another member is activated.

    Attributes:
        windows: begin and end in minutes of the week, which begins on Monday, and the member that
            runs then; at other times the first member runs. A group without a calendar has no
            windows.
    """

    members: tuple[str, ...]
    windows: tuple[tuple[int, int, str], ...] = ()


@records.dataclass(frozen=True)
class Groups:
    """Every group of a host, with the settings of a switch between members: exclusive.json.

    Attributes:
        settle: command that starts a switch, as in a switch's request.
        recover: text of the unit that brings a switch to its end after a power cut.
        on_request: services that a request activates.
        stay_seconds: shortest time that a member runs before a request activates another member.
        wait_seconds: longest time that a request waits for its service.
        idle: service -> seconds without a request after which the service is stopped.
        admin: HAProxy's socket.
        memory: GiB that each service of the host needs, as far as the plan has the figure.
    """

    groups: dict[str, Group] = records.field(default_factory=dict)
    settle: tuple[str, ...] = ()
    recover: str = ""
    on_request: tuple[str, ...] = ()
    stay_seconds: float = 600.0
    wait_seconds: float = 900.0
    idle: dict[str, float] = records.field(default_factory=dict)
    admin: str = ""
    memory: dict[str, float] = records.field(default_factory=dict)


@records.dataclass(frozen=True)
class Active:
    """Running member of a group.

    Attributes:
        at: time of the member's activation, in seconds since the epoch.
    """

    service: str
    by: str = ""
    at: float = 0.0
    why: str = ""


def due(group: Group, minute: int) -> str:
    """Return the member that the calendar names at a minute of the week."""
    due_now = (name for begin, end, name in group.windows if begin <= minute < end)
    return next((name for name in due_now if name in group.members), group.members[0])


def member(group: Group, active: Active | None) -> str:
    """Return the running member: the activated service if still a member, or the first member."""
    return active.service if active and active.service in group.members else group.members[0]


#: File that marks a sleeping service, beside the service's releases.
ASLEEP = "asleep"


def groups(state: Path) -> Groups:
    """Return the last deploy's exclusive groups; empty if a user other than root wrote the file."""
    read = files.record(Groups, state / GROUPS) or Groups()
    # Skip a group without members.
    return records.replace(
        read, groups={name: group for name, group in read.groups.items() if group.members}
    )


def active(state: Path) -> dict[str, Active]:
    """Return the activated services by group, from active.json."""
    return files.record(dict[str, Active], state / ACTIVE) or {}


def running(state: Path) -> dict[str, str]:
    """Return the running member of each group."""
    chosen = active(state)
    return {name: member(group, chosen.get(name)) for name, group in groups(state).groups.items()}


def sleeping(state: Path) -> dict[str, str]:
    """Return sleeping services, each with the service that runs instead."""
    runs, declared = running(state), groups(state).groups
    return {
        service: runs[name]
        for name, group in declared.items()
        for service in group.members
        if service not in (runs.get(name, service), NOBODY)
    }


def activate(state: Path, chosen: dict[str, str], by: str, why: str) -> None:
    """Record the running members from now on; members that already run keep their entry."""
    earlier, at = active(state), round(time.time())
    changed = {
        group: Active(service, by, at, why)
        for group, service in chosen.items()
        if group not in earlier or earlier[group].service != service
    }
    if changed:
        files.write_record(state / ACTIVE, {**earlier, **changed}, 0o600)


def mark(home: Path, unit: str, *, asleep: bool) -> None:
    """Make boots and Docker restarts skip a service, or include it again. The unit checks for this
    file, so systemd needs no reload.
    """
    file = home / ASLEEP
    if not asleep:
        file.unlink(missing_ok=True)
        return
    files.write(file, "another service of its group runs\n", 0o644)
    if str(file) not in (documents.text(systemd.UNITS / unit) or ""):
        systemd.want_at_boot(unit, wanted=False)  # the service joined a group after this release

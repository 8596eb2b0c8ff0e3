"""Groups of services of which one runs, as a host keeps them.

exclusive.json is a deploy's: which services are of a group. active.json is the host's own: which of
them runs. Both lie in the state directory, are root's alone, and are read across versions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Names of the two files below ``state``.
GROUPS, ACTIVE = "exclusive.json", "active.json"
#: Units that are there while a group has a calendar.
TIMER, SCHEDULE = "sparkwright-schedule.timer", "sparkwright-schedule.service"
#: And those while a request activates a service: the socket that HAProxy sends it to.
SOCKET, WAKE = "sparkwright-wake.socket", "sparkwright-wake.service"
WAKE_SOCKET = "/run/sparkwright-wake/requests.sock"
#: HAProxy's map of services that sleep, beside its configuration.
ASLEEP_MAP = "asleep.map"


@dataclass(frozen=True)
class Group:
    """A group; the first of its members runs until another one is activated.

    Attributes:
        windows: begin and end in minutes of the week, which begins on Monday, and the member that
            runs then; at other times the first one. Nothing where nobody has set a calendar.
    """

    members: tuple[str, ...]
    windows: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True)
class Groups:
    """Every group of a host, and what a switch between its members needs: exclusive.json.

    Attributes:
        settle: command that starts a switch, as in a switch's request.
        recover: text of the unit that brings a switch to its end after a power cut.
        on_request: services that a request activates.
        stay_seconds: that one runs at least, before a request has another one run.
        wait_seconds: that a request waits at most for its service.
        admin: HAProxy's socket.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    settle: tuple[str, ...] = ()
    recover: str = ""
    on_request: tuple[str, ...] = ()
    stay_seconds: float = 600.0
    wait_seconds: float = 900.0
    admin: str = ""


@dataclass(frozen=True)
class Active:
    """The member of a group that runs.

    Attributes:
        at: since when, seconds since the epoch.
    """

    service: str
    by: str = ""
    at: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class ActiveServices:
    """By group: active.json."""

    groups: dict[str, Active] = field(default_factory=dict)


@dataclass(frozen=True)
class PlaceRequest:
    """The files of a host's groups, as they must be; without any, none are.

    Attributes:
        files: path -> text and mode.
    """

    services_root: str
    files: dict[str, tuple[str, int]] = field(default_factory=dict)


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


def due(group: Group, minute: int) -> str:
    """The member that the calendar has running at a minute of the week."""
    at = (one for begin, end, one in group.windows if begin <= minute < end)
    return next((one for one in at if one in group.members), group.members[0])


def member(group: Group, active: Active | None) -> str:
    """The member that runs: the activated one while it is one, else the first."""
    return active.service if active and active.service in group.members else group.members[0]

"""Releases on a host: their files, smoke test, and the switch from one to another.

request.json, progress.json, release.json and history.jsonl are read across versions: their keys
are these records' names, but for ``from``, which Python keeps for itself. Times are in seconds.
"""

from __future__ import annotations

from sparkwright.host.lib.records import dataclass, field
from sparkwright.host.proxy.pool import ProxyRequest
from sparkwright.host.service import CheckResult, Service

GOOD, REVERTED, FAILED = "good", "reverted", "failed"


@dataclass(frozen=True)
class ServiceSwitch:
    """A service's part of a switch.

    Attributes:
        service: as it must run afterwards.
        from_release: the release that it goes back to, if it has to.
        why: its differences, as text.
        restart: whether it is stopped and started.
        sleeps: whether another one of its group runs afterwards: it is written, and not started.
        slept: whether another one ran before, so that it sleeps again after a way back.
        files: what is written beside its own files, path -> text and mode; none where the release
            lies on the host already.
    """

    service: Service
    from_release: str | None
    why: tuple[str, ...]
    restart: bool
    sleeps: bool = False
    slept: bool = False
    files: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The service's name."""
        return self.service.name

    @property
    def to(self) -> str:
        """The release that it goes to."""
        return self.service.release

    @property
    def has_way_back(self) -> bool:
        """Whether something else runs where the new release gives no answers."""
        return self.slept or self.from_release is not None


@dataclass(frozen=True)
class SwitchRequest:
    """Request for a switch of services, as one transaction.

    Attributes:
        by: who started it.
        settle: command that goes on with it after a boot.
        recover: text of the unit that does so.
        unmanaged: ``name restart-policy`` of unmanaged containers that make room.
        proxies: what changes of the host's proxy.
        active: group -> the member that runs before, for a switch that was decided by that.
        activates: group -> the member that runs afterwards, where that is another one.
        boot_lines: pattern of a line of an engine's log -> the phase of its boot that it begins.
        lasting: pattern of such a line -> why the engine ended, where no restart fixes that.
    """

    id: str
    by: str
    settle: tuple[str, ...]
    recover: str
    services: tuple[ServiceSwitch, ...]
    unmanaged: tuple[str, ...] = ()
    proxies: ProxyRequest | None = None
    active: dict[str, str] = field(default_factory=dict)
    activates: dict[str, str] = field(default_factory=dict)
    boot_lines: dict[str, str] = field(default_factory=dict)
    lasting: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase:
    """Phase of a service before its switch ends: of its engine's boot, or ``watching``.

    Attributes:
        began: seconds since the epoch.
        expected: seconds that it takes, as at the last boot here; None if unknown.
        longest: seconds that the whole boot may take, by the recipe; None if that is not known.
    """

    name: str
    began: float
    expected: float | None = None
    longest: float | None = None


@dataclass(frozen=True)
class SwitchJournal:
    """How far a switch is: progress.json.

    Attributes:
        step: writing, draining, stopping, switching, starting, proving, reverting or ended.
        result: None until the end, then good, reverted or failed.
        down_seconds: from the stop to the first healthy answer, the longest of its services.
        checks: service -> what the gate saw last.
        phases: service -> what it does now; with an empty name, for how long all are watched.
    """

    id: str = ""
    step: str = ""
    result: str | None = None
    reasons: tuple[str, ...] = ()
    down_seconds: float = 0.0
    checks: dict[str, tuple[CheckResult, ...]] = field(default_factory=dict)
    phases: dict[str, Phase] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryEntry:
    """Result of one switch of one service: a line of history.jsonl.

    Attributes:
        at: when it ended, seconds since the epoch.
        down_seconds: from the stop to the first healthy answer.
        result: good, reverted or failed.
        unmanaged: containers that made room.
    """

    service: str
    from_release: str | None
    to: str
    by: str
    at: float
    why: tuple[str, ...]
    down_seconds: float
    result: str
    reasons: tuple[str, ...]
    unmanaged: tuple[str, ...] = ()

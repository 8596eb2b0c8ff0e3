"""Releases on a host: their files, smoke test, and the switch from one release to another.

request.json, progress.json, release.json and history.jsonl are read across versions: their keys are
these records' fields, except ``from``, a keyword of Python. Times are in seconds.
"""

from sparkwright.host.lib.records import dataclass, field
from sparkwright.host.proxy.pool import ProxyRequest
from sparkwright.host.service import CheckResult, Service

GOOD, REVERTED, FAILED = "good", "reverted", "failed"


@dataclass(frozen=True)
class ServiceSwitch:
    """A service's part of a switch.

    Attributes:
        service: the service as it must run afterwards.
        from_release: the release to restore if the new release fails.
        why: the release's differences, as text.
        restart: whether to stop and start the service.
        sleeps: whether another service of its group runs afterwards; this service's release is then
            written but not started.
        slept: whether another service of its group ran before, so that this service sleeps again
            after a reversal.
        files: further files to write, path -> text and mode; empty if the host already has the
            release.
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
        """Return the new release's id."""
        return self.service.release

    @property
    def has_way_back(self) -> bool:
        """Return whether an earlier release can run if the new release fails its smoke test."""
        return self.slept or self.from_release is not None


@dataclass(frozen=True)
class SwitchRequest:
    """Request for a switch of services, as one transaction.

    Attributes:
        by: user who started the switch.
        settle: command that continues the switch after a boot.
        recover: text of the unit that runs ``settle``.
        unmanaged: ``name restart-policy`` of unmanaged containers to stop for the switch.
        proxies: changes of the host's proxy.
        active: group -> the member that ran when the switch was planned.
        activates: group -> the member that runs afterwards, if it changes.
        boot_lines: pattern of a line of the engine's log -> the boot phase that begins there.
        lasting: pattern of a log line -> cause of an end that no restart fixes.
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
    """Phase of a service during its switch: a phase of its engine's boot, or ``watching``.

    Attributes:
        began: seconds since the epoch.
        expected: seconds that the phase took at the last boot here; None if unknown.
        longest: the recipe's limit for the whole boot in seconds; None if unknown.
    """

    name: str
    began: float
    expected: float | None = None
    longest: float | None = None


@dataclass(frozen=True)
class SwitchJournal:
    """Progress of a switch: progress.json.

    Attributes:
        step: writing, draining, stopping, switching, starting, proving, reverting or ended.
        result: None until the end, then good, reverted or failed.
        down_seconds: longest time of a service from its stop to its first healthy answer.
        checks: service -> the smoke test's last result.
        phases: service -> its present phase; the empty name has the phase in which all services are
            watched.
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
        at: end of the switch, in seconds since the epoch.
        down_seconds: seconds from the stop to the first healthy answer.
        result: good, reverted or failed.
        unmanaged: unmanaged containers that the switch stopped.
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

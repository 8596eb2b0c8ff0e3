"""What a host runs, and how it came to that."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.lock import Owner
from sparkwright.host.contracts.marks import Maintenance, Stopped
from sparkwright.host.contracts.switch import HistoryEntry, SwitchJournal
from sparkwright.host.contracts.watch import WatchReport
from sparkwright.host.service import Service


@dataclass(frozen=True)
class StatusRequest:
    """What is reported.

    Attributes:
        ports: service -> address and port whose health is checked; those of others are in their
            releases.
        texts: whether the files of what runs are reported.
    """

    services_root: str = "/opt/sparkwright"
    ports: dict[str, tuple[str, int]] = field(default_factory=dict)
    texts: bool = False


@dataclass(frozen=True)
class KeptRelease:
    """A release on a host.

    Attributes:
        at: when it was written there, seconds since the epoch.
        service: its record; None where it is damaged, or of another version of sparkwright.
    """

    at: float
    service: Service | None = None


@dataclass(frozen=True)
class RunningContainer:
    """A service's container; ``started`` is RFC 3339."""

    running: bool
    started: str
    release: str | None
    image: str


@dataclass(frozen=True)
class Health:
    """What /health says: a code within seconds, or an error's words."""

    code: int | None
    seconds: float = 0.0
    said: str = ""


@dataclass(frozen=True)
class ServiceStatus:
    """One service on a host.

    Attributes:
        current, good: the release that is to run, and the last that gave real answers.
        unit: systemd's properties.
        health: None where nobody says at which port.
        texts: name -> text of what runs, where requested.
        stopped: by whom it was stopped last; it may have been started since.
    """

    current: str | None
    good: str | None
    releases: dict[str, KeptRelease]
    container: RunningContainer | None
    unit: dict[str, str]
    health: Health | None
    texts: dict[str, str | None] = field(default_factory=dict)
    stopped: Stopped | None = None


@dataclass(frozen=True)
class HostStatus:
    """A host's services, who is at work on it, and what was done. Oldest first.

    Attributes:
        now: the host's clock, seconds since the epoch.
        watch: None where no watch is.
        maintenance: None where nobody has taken the host out of every pool.
        sleeping: exclusive services that sleep -> the one of their group that runs.
    """

    now: float
    lock: Owner | None
    switch: SwitchJournal | None
    history: tuple[HistoryEntry, ...]
    services: dict[str, ServiceStatus]
    watch: WatchReport | None = None
    maintenance: Maintenance | None = None
    sleeping: dict[str, str] = field(default_factory=dict)

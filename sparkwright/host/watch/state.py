"""The watch of a host: what it looks at, what it saw, and what it holds to be wrong.

config.json and watch.json are read across versions: their keys are these names.
"""

from __future__ import annotations

from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class WatchedService:
    """A service that is looked at; ``boot_seconds`` is how long a first boot may take."""

    name: str
    address: str
    port: int
    boot_seconds: float


@dataclass(frozen=True)
class WatchConfig:
    """Configuration of the watch, which it reads first.

    Attributes:
        services_root: where services, state and the watch itself lie.
        paths: whose file systems are looked at.
        metric_names: an engine's name of a metric -> the neutral one (``host/lib/metrics.py``).
        limits: where something begins to be wrong (``findings/thresholds.yaml``).
    """

    services: tuple[WatchedService, ...]
    services_root: str
    paths: tuple[str, ...]
    metric_names: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def report(self) -> str:
        """Path of watch.json."""
        return f"{self.services_root}/state/watch.json"


@dataclass(frozen=True)
class ServiceSample:
    """Sample of a service at one time. Values that it did not report are None, or not there.

    Attributes:
        health: status of /health.
        active, restarts: systemd's ActiveState and NRestarts.
        metrics: those of its engine that are watched, by neutral names (``host/lib/metrics.py``).
        drift: what is not as the last switch left it.
    """

    health: int | None = None
    active: str | None = None
    restarts: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    drift: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.metrics.get(name, 0.0)


@dataclass(frozen=True)
class Sample:
    """Sample of a host.

    Attributes:
        at: seconds since the epoch.
        switching: whether a switch was under way.
        gpu: faults of the GPU, as text, by the findings that they lead to.
        disks: path -> free and total bytes.
    """

    at: float
    switching: bool = False
    gpu: dict[str, str] | None = None
    disks: dict[str, tuple[int, int]] = field(default_factory=dict)
    services: dict[str, ServiceSample] = field(default_factory=dict)


@dataclass(frozen=True)
class WatchFinding:
    """Finding of the watch.

    Attributes:
        service: None for the host.
        severity: error or warning.
        seen: what was seen, in words.
        since: when it was first held to be wrong without a break, seconds since the epoch.
    """

    name: str
    service: str | None
    severity: str
    seen: str
    since: float = 0.0

    @property
    def subject(self) -> tuple[str, str | None]:
        """The fault and its service: the same at the next look."""
        return self.name, self.service


@dataclass(frozen=True)
class WatchReport:
    """When the watch looked last, and what it holds to be wrong."""

    at: float
    findings: tuple[WatchFinding, ...] = ()


@dataclass(frozen=True)
class WatchState(WatchReport):
    """The same with the samples of a day: watch.json."""

    ring: tuple[Sample, ...] = ()

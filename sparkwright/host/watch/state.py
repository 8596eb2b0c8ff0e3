"""Records of a host's watch: configuration, samples and findings.

config.json and watch.json are read across versions: their keys are the names of these fields.
"""

from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class WatchedService:
    """A watched service; ``boot_seconds`` is the longest first boot."""

    name: str
    address: str
    port: int
    boot_seconds: float


@dataclass(frozen=True)
class WatchConfig:
    """Configuration of the watch.

    Attributes:
        services_root: directory of services, state and the watch.
        paths: paths whose file systems are watched.
        metric_names: an engine's name of a metric -> the neutral name (``host/lib/metrics.py``).
        limits: thresholds of findings (``findings/thresholds.yaml``).
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
    """Sample of a service at one time. Unreported values are None or missing.

    Attributes:
        health: status of /health.
        active, restarts: systemd's ActiveState and NRestarts.
        metrics: watched metrics of the service's engine, by neutral names
            (``host/lib/metrics.py``).
        drift: differences from the files of the last switch.
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
        gpu: finding -> fault of the GPU, as text.
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
        service: name of the service; None for the host.
        severity: error or warning.
        seen: the observation as text.
        since: start of the uninterrupted fault, in seconds since the epoch.
    """

    name: str
    service: str | None
    severity: str
    seen: str
    since: float = 0.0

    @property
    def subject(self) -> tuple[str, str | None]:
        """Return the fault and its service, which are equal in consecutive samples."""
        return self.name, self.service


@dataclass(frozen=True)
class WatchReport:
    """Time of the watch's last sample, and its findings."""

    at: float
    findings: tuple[WatchFinding, ...] = ()


@dataclass(frozen=True)
class WatchState(WatchReport):
    """A WatchReport with a day's samples: watch.json."""

    ring: tuple[Sample, ...] = ()

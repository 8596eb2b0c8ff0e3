"""What a doctor sees of a host."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import cached_property

from sparkwright.host.contracts.disks import FileSystem
from sparkwright.host.contracts.gpu import Gpus
from sparkwright.host.contracts.marks import Maintenance, Stopped
from sparkwright.host.contracts.observation import Docker
from sparkwright.host.contracts.outcome import Outcome
from sparkwright.host.contracts.status import Health
from sparkwright.host.contracts.watch import WatchReport


@dataclass(frozen=True)
class ExaminedService:
    """A service to look at; ``secrets`` is the file with its API key."""

    name: str
    unit: str
    address: str
    port: int
    home: str
    secrets: str


@dataclass(frozen=True)
class ExaminationRequest:
    """What a doctor looks at; ``seconds`` lie between two looks at the metrics."""

    services: tuple[ExaminedService, ...] = ()
    models_root: str = "/opt/models"
    services_root: str = "/opt/sparkwright"
    seconds: float = 5.0


@dataclass(frozen=True)
class Mount:
    """A directory that a container sees: links that lead out of it, LFS pointers."""

    source: str
    target: str
    links: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContainerSeen:
    """A container as Docker has it; ``words`` are entry point and command."""

    name: str
    running: bool
    started: str
    exit_code: int
    image: str
    error: str = ""
    oom_killed: bool = False
    restarts: int = 0
    restart_policy: str = "no"
    release: str | None = None
    words: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    gpu: bool = True
    mounts: tuple[Mount, ...] = ()

    @cached_property
    def arguments(self) -> dict[str, str]:
        """``--max-model-len 8192`` and ``--max-model-len=8192`` -> ``max_model_len: 8192``.

        Also of a command that is one word after ``bash -lc``.
        """
        words = list(self.words)
        if any(" --" in word for word in words):
            words = [part for word in words for part in _split(word)]
        found: dict[str, str] = {}
        name = ""
        for word in words:
            if word.startswith("--"):
                name, _, value = word[2:].partition("=")
                name = name.replace("-", "_")
                found[name] = value
            elif name:
                found[name] = f"{found[name]} {word}".strip()
        return found

    def number(self, argument: str) -> float | None:
        """An argument's number; None where it has none."""
        try:
            return float(self.arguments[argument])
        except (KeyError, ValueError):
            return None


def _split(word: str) -> list[str]:
    try:
        return shlex.split(word) if len(word) < 20_000 else word.split()
    except ValueError:
        return word.split()


@dataclass(frozen=True)
class Look:
    """A service's metrics at one time; ``at`` in seconds since the epoch."""

    at: float
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values.get(f"vllm:{name}", 0.0)


@dataclass(frozen=True)
class ServiceSeen:
    """One of our services.

    Attributes:
        unit: systemd's properties.
        log: journal and container log, oldest first.
        gpu_inside: ``nvidia-smi -L`` within the container; None where none runs.
        metrics: two looks, some seconds apart; fewer where the service gives none.
        stopped: by whom it was stopped last; it may have been started since.
        waits: which ranks of its cluster are missing; None where none is, or it has none.
    """

    unit: dict[str, str]
    health: Health
    log: tuple[str, ...] = ()
    container: ContainerSeen | None = None
    gpu_inside: Outcome | None = None
    metrics: tuple[Look, ...] = ()
    stopped: Stopped | None = None
    waits: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether /health says so."""
        return self.health.code == 200

    @property
    def active(self) -> bool:
        """Whether systemd has the unit running."""
        return self.unit.get("ActiveState") == "active"

    @property
    def restarts(self) -> int:
        """How often systemd has started it again since somebody last did."""
        said = self.unit.get("NRestarts", "")
        return int(said) if re.fullmatch(r"[0-9]{1,9}", said) else 0

    def last(self, pattern: str) -> str | None:
        """The last line of the log that matches, without blanks around it."""
        return next((line.strip() for line in reversed(self.log) if re.search(pattern, line)), None)

    def between(self, name: str) -> float | None:
        """How far a counter rose between the two looks; None without two, or after a restart."""
        if len(self.metrics) < 2:
            return None
        risen = self.metrics[-1][name] - self.metrics[0][name]
        return risen if risen >= 0 else None


@dataclass(frozen=True)
class RunningFetch:
    """A fetch that runs, and for how many seconds no byte has come."""

    unit: str
    idle_seconds: float


@dataclass(frozen=True)
class Examination:
    """Everything that is seen of a host.

    Attributes:
        now: the host's clock, seconds since the epoch.
        kernel: lines of the last day about GPU, memory, heat and disks.
        boot_before: the same of the boot before, where that ended without a shutdown.
        others: containers that are not ours.
        memory: /proc/meminfo in bytes.
        swappiness: the kernel's own setting, 0 to 200.
        desktop: whether one runs.
        pressure: resource -> ``some`` and ``full``, percent of the last minute.
        docker: None when it does not answer.
        ports: ConnectX ports that are up, in Mb/s.
        maintenance: None where nobody has taken the host out of every pool.
    """

    now: float
    gpu: Gpus
    services: dict[str, ServiceSeen] = field(default_factory=dict)
    kernel: tuple[str, ...] = ()
    boot_before: tuple[str, ...] = ()
    others: tuple[ContainerSeen, ...] = ()
    disks: tuple[FileSystem, ...] = ()
    memory: dict[str, int] = field(default_factory=dict)
    swappiness: int | None = None
    desktop: bool = False
    pressure: dict[str, dict[str, float]] = field(default_factory=dict)
    docker: Docker | None = None
    fetches: tuple[RunningFetch, ...] = ()
    ports: dict[str, int] = field(default_factory=dict)
    watch: WatchReport | None = None
    maintenance: Maintenance | None = None

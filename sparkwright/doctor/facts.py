"""What a doctor sees of a host, typed. Collected by roles/doctor/host/collect.py on the host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from sparkwright.doctor.watch import WatchSeen
from sparkwright.findings.finding import Finding
from sparkwright.text.timestamps import epoch


class _Seen(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Outcome(_Seen):
    """A command's outcome; ``code`` is None when it hung or is not there."""

    code: int | None
    out: str = ""
    err: str = ""


class Mount(_Seen):
    """A directory that a container sees: links that lead out of it, LFS pointers."""

    source: str
    target: str
    links: list[str] = []
    pointers: list[str] = []


class ContainerSeen(_Seen):
    """A container as Docker has it; ``words`` are entry point and command."""

    name: str
    running: bool
    started: str
    exit_code: int
    error: str = ""
    oom_killed: bool = False
    restarts: int = 0
    restart_policy: str = "no"
    image: str
    release: str | None = None
    words: list[str] = []
    environment: dict[str, str] = {}
    gpu: bool = True
    mounts: list[Mount] = []

    @cached_property
    def arguments(self) -> dict[str, str]:
        """``--max-model-len 8192`` and ``--max-model-len=8192`` -> ``max_model_len: 8192``.

        Also of a command that stands in one word behind ``bash -lc``.
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
        return shlex.split(word)
    except ValueError:
        return word.split()


class Look(_Seen):
    """A service's metrics at a moment; ``at`` in seconds since the epoch."""

    at: float
    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values.get(f"vllm:{name}", 0.0)


class ServiceSeen(_Seen):
    """One of our services.

    Attributes:
        unit: systemd's properties.
        log: journal and container log, oldest first.
        gpu_inside: ``nvidia-smi -L`` within the container; None where none runs.
        health: ``{"code", "said"}`` of /health.
        metrics: two looks, some seconds apart; fewer where the service does not tell.
    """

    unit: dict[str, str]
    log: list[str] = []
    container: ContainerSeen | None = None
    gpu_inside: Outcome | None = None
    health: dict[str, Any] = {}
    metrics: list[Look] = []

    @property
    def healthy(self) -> bool:
        """Whether /health says so."""
        return self.health.get("code") == 200

    @property
    def active(self) -> bool:
        """Whether systemd has the unit running."""
        return self.unit.get("ActiveState") == "active"

    @property
    def restarts(self) -> int:
        """How often systemd has started it again since somebody last did."""
        return int(self.unit.get("NRestarts") or 0)

    def last(self, pattern: str) -> str | None:
        """The last line of the log that matches, without blanks around it."""
        return next((line.strip() for line in reversed(self.log) if re.search(pattern, line)), None)

    def between(self, name: str) -> float | None:
        """How far a counter rose between the two looks; None without two, or after a restart."""
        if len(self.metrics) < 2:
            return None
        risen = self.metrics[-1][name] - self.metrics[0][name]
        return risen if risen >= 0 else None


class Disk(_Seen):
    """A file system, in bytes."""

    path: str
    free: int
    total: int


class GpuSeen(_Seen):
    """nvidia-smi's answer: rows of field and text."""

    code: int | None
    err: str = ""
    rows: list[dict[str, str]] = []


class Planned(_Seen):
    """What a service shall be, as far as a diagnosis goes by it.

    Attributes:
        corrupts: whether the tag has the defect that decays acceptance under prefix caching.
        boot_seconds: how long a first boot may take.
    """

    release: str
    tag: str
    names: list[str]
    boot_seconds: int
    speculates: bool
    corrupts: bool = False


class Facts(_Seen):
    """Everything that was seen of a host.

    Attributes:
        kernel: lines of the last day about GPU, memory, heat and disks.
        others: containers that are not ours.
        memory: /proc/meminfo in bytes.
        pressure: resource -> ``some`` and ``full``, percent of the last minute.
        docker: None when it does not answer.
        fetches: fetches that run, with ``idle_seconds`` since the last byte.
        ports: ConnectX ports that are up, in Mb/s.
        findings: preflight's.
    """

    now: float
    services: dict[str, ServiceSeen] = {}
    gpu: GpuSeen
    kernel: list[str] = []
    others: list[ContainerSeen] = []
    disks: list[Disk] = []
    memory: dict[str, int] = {}
    pressure: dict[str, dict[str, float]] = {}
    docker: dict[str, Any] | None = None
    fetches: list[dict[str, Any]] = []
    ports: dict[str, int] = {}
    watch: WatchSeen | None = None
    planned: dict[str, Planned] = {}
    findings: list[Finding] = []

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool of memory."""
        return any("GB10" in row.get("name", "") for row in self.gpu.rows)

    def uptime(self, service: ServiceSeen) -> float:
        """Seconds since a service's container started; 0 where none runs."""
        if service.container is None or not service.container.running:
            return 0.0
        return max(0.0, self.now - epoch(service.container.started))

    def each(self) -> Iterator[tuple[str, ServiceSeen, Planned | None]]:
        """Every service, with what is planned for it."""
        for name, one in self.services.items():
            yield name, one, self.planned.get(name)


def facts(answer: Mapping[str, Any]) -> Facts:
    """A host's answer, typed."""
    return Facts.model_validate(answer)

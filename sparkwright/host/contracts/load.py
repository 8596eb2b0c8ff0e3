"""What a host does now: its services' counters and gauges, its GPUs and its memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.gpu import Gpu


@dataclass(frozen=True)
class LoadRequest:
    """What is looked at.

    Attributes:
        services: name -> address and port of vLLM itself.
        watch: path of the watch's configuration, which has them where no plan does.
        state: directory that says which exclusive services sleep.
    """

    services: dict[str, tuple[str, int]] = field(default_factory=dict)
    watch: str = ""
    state: str = ""


@dataclass(frozen=True)
class ServiceLoad:
    """A service. Counters count since its engine started.

    Attributes:
        generated: tokens of answers so far.
        running, waiting: requests now.
        cache: share of the KV cache in use.
        drafted, accepted: tokens of the drafter so far; None without one.
    """

    generated: float
    running: float
    waiting: float
    cache: float
    drafted: float | None = None
    accepted: float | None = None


@dataclass(frozen=True)
class HostLoad:
    """A host at one time.

    Attributes:
        at: seconds of a clock of the host's that nobody sets.
        services: None for one that does not report its metrics.
        memory, available: bytes of the host's memory.
        sleeping: exclusive services that sleep -> the one of their group that runs.
    """

    at: float
    services: dict[str, ServiceLoad | None]
    gpus: tuple[Gpu, ...] = ()
    memory: int = 0
    available: int = 0
    sleeping: dict[str, str] = field(default_factory=dict)

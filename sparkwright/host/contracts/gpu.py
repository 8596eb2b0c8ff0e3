"""What nvidia-smi says of a host's GPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """One GPU. What the driver does not say (GB10 answers ``[N/A]`` to some questions) is None.

    Attributes:
        name: e.g. ``NVIDIA GB10``.
        compute_cap: e.g. ``12.1``.
        driver: e.g. ``580.95.05``.
        memory_mib: mebibytes of its own memory; None on unified memory (GB10).
        memory_used_mib: of these.
        temperature_c, power_w: degrees Celsius and watts.
        busy_percent: share of the last moment in which it computed.
        clock_mhz, clock_max_mhz: of its multiprocessors.
        index, uuid: what Docker and nvidia-smi call it; the index can change with a slot.
        event_reasons: bits of clocks_event_reasons.active; 0 where the driver does not say.
    """

    name: str
    compute_cap: str | None = None
    driver: str | None = None
    memory_mib: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    busy_percent: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    event_reasons: int = 0
    index: int | None = None
    uuid: str | None = None
    memory_used_mib: int | None = None

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool: known by the GPU, not by a missing number."""
        return self.compute_cap == "12.1" or "GB10" in self.name


@dataclass(frozen=True)
class Gpus:
    """nvidia-smi's answer.

    Attributes:
        found: whether nvidia-smi is installed.
        code: its exit code; None when it hung or is not there.
        said: its own words when it failed.
        gpus: what it lists.
    """

    found: bool
    code: int | None
    said: str = ""
    gpus: tuple[Gpu, ...] = ()

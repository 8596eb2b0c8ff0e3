"""Reading what ``nvidia-smi`` says, without trusting any field to be there.

GB10 shares one memory pool with the CPU and answers ``[N/A]`` where a discrete card gives
mebibytes; other forms were seen too. A field that is not a number is None, never an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The fields asked for, in order. Shared with the probe, which runs the query.
QUERY_FIELDS = ("name", "compute_cap", "driver_version", "memory.total")

#: Architectures by compute capability (major, minor); minor None stands for every minor.
_FAMILIES: tuple[tuple[tuple[int, int | None], str], ...] = (
    ((12, 1), "GB10 (sm_121a)"),
    ((12, 0), "RTX 50 / RTX PRO Blackwell (sm_120)"),
    ((10, None), "data-centre Blackwell (B200/GB200)"),
    ((9, None), "Hopper"),
    ((8, 9), "Ada"),
    ((8, None), "Ampere"),
    ((7, 5), "Turing"),
)


@dataclass(frozen=True)
class Gpu:
    """One GPU as ``nvidia-smi`` lists it.

    Attributes:
        name: e.g. ``NVIDIA GB10``.
        compute_cap: e.g. ``12.1``; None where the driver would not say.
        driver: e.g. ``580.95.05``; None where the driver would not say.
        memory_mib: mebibytes of its own memory; None on unified memory (GB10).
    """

    name: str
    compute_cap: str | None
    driver: str | None
    memory_mib: int | None

    @property
    def family(self) -> str:
        """The architecture's name, for messages that refuse by name."""
        return family(self.compute_cap)

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool: known by the GPU, not by a missing number."""
        return self.compute_cap == "12.1"


def family(compute_cap: str | None) -> str:
    """``12.1`` -> ``GB10 (sm_121a)``."""
    match = re.fullmatch(r"(\d+)\.(\d+)", compute_cap or "")
    if match is None:
        return "unknown architecture"
    major, minor = int(match[1]), int(match[2])
    for (want_major, want_minor), name in _FAMILIES:
        if major == want_major and want_minor in (None, minor):
            return name
    return f"sm_{major}{minor}"


def parse_query(text: str) -> list[Gpu]:
    """Parse ``nvidia-smi --query-gpu=<QUERY_FIELDS> --format=csv,noheader``.

    Lines that do not have the four fields are passed over: they are messages, not GPUs.
    """
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(QUERY_FIELDS):
            continue
        name, compute_cap, driver, memory = fields
        gpus.append(
            Gpu(
                name=name,
                compute_cap=compute_cap if re.fullmatch(r"\d+\.\d+", compute_cap) else None,
                driver=driver if re.match(r"\d+", driver) else None,
                memory_mib=_mebibytes(memory),
            )
        )
    return gpus


def driver_major(version: str | None) -> int | None:
    """``580.95.05`` -> 580; None where there is no number to read."""
    match = re.match(r"\d+", version or "")
    return int(match[0]) if match else None


def _mebibytes(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)(?:\s*MiB)?", text)
    return int(match[1]) if match else None

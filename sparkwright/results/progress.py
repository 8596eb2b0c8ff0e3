"""How far the fetches of a host are, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.text.visible import visible


@dataclass(frozen=True)
class Job:
    """One fetch. Sizes in bytes, ``rate`` in bytes per second; ``total`` is 0 while not known."""

    name: str
    state: str
    done: int = 0
    total: int = 0
    rate: float = 0.0
    running: bool = True

    @classmethod
    def of(cls, name: str, known: FetchProgress | None, *, running: bool = True) -> Job:
        """From what the host reports of a job; None where it has not begun."""
        if known is None:
            return cls(name, "starting", running=running)
        state, done, total = known.state, known.bytes_done, known.bytes_total
        return cls(name, visible(state, 40), done, total, known.rate, running)


def line(jobs: Sequence[Job]) -> str:
    """All fetches of a host: bytes, rate, time left, and what is not simply being fetched."""
    total, done = sum(job.total for job in jobs), sum(job.done for job in jobs)
    rate = sum(job.rate for job in jobs if job.running)
    said = [f"{done / 1e9:.2f} of {total / 1e9:.2f} GB at {rate / 1e6:.0f} MB/s"] if total else []
    if total > done and rate >= 1e5:
        said.append(f"{_time((total - done) / rate)} left")
    parts = []
    for job in jobs:
        share = f"{job.done * 100 // job.total} %" if job.total else ""
        state = job.state if job.state not in ("running", "done") else ""
        words = "done" if not job.running else " ".join(word for word in (share, state) if word)
        parts.append(f"{job.name} {words}".strip())
    return ", ".join(said) + (": " if said else "") + ", ".join(parts)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""How far the fetches of a host are, in one line."""

from collections.abc import Mapping

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.text.visible import visible

_BEFORE = FetchProgress("starting")


def line(jobs: Mapping[str, FetchProgress | None], ended: frozenset[str] = frozenset()) -> str:
    """All fetches of a host: bytes, rate, time left, and what is not simply being fetched.

    Args:
        jobs: name -> what the host reports of a fetch; None where it has not begun.
        ended: names of jobs that run no more.
    """
    downloads = {name: progress or _BEFORE for name, progress in jobs.items()}
    total = sum(each.bytes_total for each in downloads.values())
    done = sum(each.bytes_done for each in downloads.values())
    rate = sum(each.rate for name, each in downloads.items() if name not in ended)
    sums = [f"{done / 1e9:.2f} of {total / 1e9:.2f} GB at {rate / 1e6:.0f} MB/s"] if total else []
    if total > done and rate >= 1e5:
        sums.append(f"{_time((total - done) / rate)} left")
    parts = [
        f"{name} {'done' if name in ended else _state(each)}".strip()
        for name, each in downloads.items()
    ]
    return ", ".join(sums) + (": " if sums else "") + ", ".join(parts)


def _state(job: FetchProgress) -> str:
    share = f"{job.bytes_done * 100 // job.bytes_total} %" if job.bytes_total else ""
    state = visible(job.state, 40) if job.state not in ("running", "done") else ""
    return " ".join(filter(None, (share, state)))


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Progress of hosts: their fetches, and boots of their engines by phase."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.release import Phase
from sparkwright.text.visible import visible

_BEFORE = FetchProgress("starting")


def together(
    jobs: Mapping[str, FetchProgress | None], ended: frozenset[str] = frozenset()
) -> FetchProgress:
    """Merge all fetches of a host: sums, sources, and a message with the share of each fetch.

    Args:
        jobs: name -> the host's report on a fetch; None if the fetch has not begun.
        ended: names of jobs that no longer run.
    """
    every = {name: progress or _BEFORE for name, progress in jobs.items()}
    for name in ended:
        every[name] = replace(every[name], rate=0, source="")
    sources = dict.fromkeys(visible(each.source, 40) for each in every.values() if each.source)
    parts = [
        f"{name} {'done' if name in ended else _state(each)}".strip()
        for name, each in every.items()
    ]
    return replace(added(every.values()), source=" and ".join(sources), message=", ".join(parts))


def added(every: Collection[FetchProgress]) -> FetchProgress:
    """Return the sums of bytes and rates of several fetches."""
    names = ("bytes_done", "bytes_total", "rate")
    return FetchProgress(**{name: sum(getattr(each, name) for each in every) for name in names})


def figures(seen: FetchProgress) -> str:
    """Return the bytes, rate, source and time left; empty while the total is unknown."""
    if not seen.bytes_total:
        return ""
    amount = f"{seen.bytes_done / 1e9:.2f} of {seen.bytes_total / 1e9:.2f} GB"
    origin = f" from {seen.source}" if seen.source else ""
    rest = seen.bytes_total - seen.bytes_done
    left = f", {duration(rest / seen.rate)} left" if rest > 0 and seen.rate >= 1e5 else ""
    return f"{amount} at {seen.rate / 1e6:.0f} MB/s{origin}{left}"


def line(seen: FetchProgress) -> str:
    """Return a host's fetches in one line."""
    return ": ".join(filter(None, (figures(seen), seen.message)))


def phases(seen: Mapping[str, Phase], now: float) -> str:
    """Return the boot phases on a host with their durations, or the remaining time of the watch.

    Args:
        seen: service -> the service's phase.
        now: the host's clock, seconds since the epoch.
    """
    texts = []
    for service, phase in seen.items():
        passed, expected = max(0.0, now - phase.began), phase.expected
        if not service:
            return f"watching for another {duration(max(0.0, (expected or 0) - passed))}"
        usual = f" (the whole start at most {duration(phase.longest)})" if phase.longest else ""
        if expected is not None:
            usual = f" ({duration(expected)} last time)"
        step = f"{visible(service, 40)}: {visible(phase.name, 40)}"
        texts.append(f"{step} for {duration(passed)}{usual}")
    return ", ".join(texts)


def _state(job: FetchProgress) -> str:
    share = f"{job.bytes_done * 100 // job.bytes_total} %" if job.bytes_total else ""
    state = visible(job.state, 40) if job.state not in ("running", "done") else ""
    return " ".join(filter(None, (share, state)))


def duration(seconds: float) -> str:
    """Return a duration with its unit, in two or three digits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

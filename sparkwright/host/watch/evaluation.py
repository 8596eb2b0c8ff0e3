"""Findings of the watch, from the samples of a day. Pure: reads and changes nothing.

The doctor judges its looks by this too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from sparkwright.host.lib.gpu import Gpu, Gpus
from sparkwright.host.watch.state import GpuSample, Sample, ServiceSample, WatchFinding
from sparkwright.host.watch.thresholds import BRAKE, HEAT, Thresholds

#: A service's sample, and when it was taken.
Timed = tuple[float, ServiceSample]

_HOUR, _DAY = 3600.0, 86400.0
#: Every sample of the last hour is kept, and of the day before one of each ten minutes.
_COARSE = 600.0
_ERROR, _WARNING = "error", "warning"
_GIB = 1024**3
_HELD_BACK = (("heat", "gpu-heat"), ("brake", "gpu-power-brake"), ("low", "gb10-low-power"))
#: Parts of a GPU's state and their findings.
GPU_FINDINGS = (("silent", "gpu-silent"), *_HELD_BACK)


def kept(ring: list[Sample]) -> list[Sample]:
    """The ring without what is too old or too close together."""
    if not ring:
        return []
    now = ring[-1].at
    samples: list[Sample] = []
    for sample in ring:
        age = now - sample.at
        if not 0 <= age <= _DAY:
            continue
        if age > _HOUR and samples and sample.at - samples[-1].at < _COARSE:
            continue
        samples.append(sample)
    return samples


def judge(ring: list[Sample], boots: Mapping[str, float], limits: Thresholds) -> list[WatchFinding]:
    """Everything that is wrong now.

    Args:
        boots: service -> how long a first boot may take, in seconds.
    """
    if not ring:
        return []
    watch_findings = [*_gpu(ring, limits), *_disks(ring, limits)]
    for name, seconds in boots.items():
        watch_findings += _service(name, seconds, _of(ring, name), limits)
    return watch_findings


def carried(
    found: Iterable[WatchFinding], before: Iterable[WatchFinding], now: float
) -> list[WatchFinding]:
    """The same with ``since``: when each was first held to be wrong without a break."""
    known = {(item.name, item.service): item.since for item in before}
    return [replace(item, since=known.get((item.name, item.service), now)) for item in found]


def _of(ring: list[Sample], name: str) -> list[Timed]:
    """A service's part of every sample.

    A switch begins it anew: it stops and starts services on purpose, and judges them by itself.
    """
    timeds: list[Timed] = []
    for sample in ring:
        if sample.switching:
            timeds.clear()
        elif name in sample.services:
            timeds.append((sample.at, sample.services[name]))
    return timeds


def _lasting(samples: list[Timed], holds: Callable[[ServiceSample], bool]) -> float:
    """For how many seconds something has held without a break, up to the newest sample."""
    since = None
    for at, sample in reversed(samples):
        if not holds(sample):
            break
        since = at
    return samples[-1][0] - since if since is not None else 0.0


def _service(
    name: str, boot: float, samples: list[Timed], limits: Thresholds
) -> Iterator[WatchFinding]:
    if not samples:
        return
    now = samples[-1][1]
    if now.active == "failed":
        seen = f"the unit has failed after {now.restarts} restarts"
        yield WatchFinding("given-up", name, _ERROR, seen)
    else:
        yield from _restarted(name, samples, limits)
    seconds = _lasting(samples, lambda item: item.active == "active" and item.health != 200)
    if seconds > boot:
        text = now.health or "nothing"
        yield WatchFinding(
            "not-serving", name, _ERROR, f"/health says {text} for {_minutes(seconds)}"
        )
    yield from _wedged(name, samples, limits)
    seconds = _lasting(samples, lambda item: (item.cache or 0) >= limits.cache_full)
    if seconds >= limits.cache_seconds:
        seen = f"KV cache full for {_minutes(seconds)}, {now.waiting or 0:.0f} requests wait"
        yield WatchFinding("kv-cache-full", name, _WARNING, seen)
    yield from _acceptance(name, samples, limits)
    # Seen twice: in the middle of a deploy nothing is as planned yet.
    if now.drift and len(samples) > 1 and samples[-2][1].drift:
        yield WatchFinding("drift", name, _WARNING, "; ".join(now.drift))


def _restarted(name: str, samples: list[Timed], limits: Thresholds) -> Iterator[WatchFinding]:
    counts = [item.restarts for at, item in samples if samples[-1][0] - at <= _HOUR]
    risen = sum(max(0, now - before) for before, now in pairwise(counts))
    if risen >= limits.restarts_hour:
        severity = _ERROR if risen > 1 else _WARNING
        yield WatchFinding("restarts", name, severity, f"{risen} restarts within an hour")


def _wedged(name: str, samples: list[Timed], limits: Thresholds) -> Iterator[WatchFinding]:
    now = samples[-1][1]
    if now.progress is None:
        return

    def still(one: ServiceSample) -> bool:
        return (one.running or 0) > 0 and one.health == 200 and one.progress == now.progress

    seconds = _lasting(samples, still)
    if seconds >= limits.stuck_seconds:
        seen = f"{now.running:.0f} requests run, and no token for {_minutes(seconds)}"
        yield WatchFinding("wedge", name, _ERROR, seen)


def _acceptance(name: str, samples: list[Timed], limits: Thresholds) -> Iterator[WatchFinding]:
    """Lately against before. Lately is ten minutes and enough drafts, or since the server began."""
    drafted = accepted = 0.0
    index = len(samples) - 1
    while index > 0 and (drafted < limits.drafted or samples[-1][0] - samples[index][0] < _COARSE):
        more = _drafted(samples[index - 1][1], samples[index][1])
        if more is None:
            break
        drafted, accepted = drafted + more[0], accepted + more[1]
        index -= 1
    if drafted < limits.drafted:
        return
    share = accepted / drafted
    earlier = [_drafted(item, next_) for (_, item), (_, next_) in pairwise(samples[: index + 1])]
    items = [item for item in earlier if item is not None]
    total = sum(item[0] for item in items)
    before = sum(item[1] for item in items) / total if total >= limits.drafted else None
    observed = f"{share:.1%} of {drafted:.0f} drafted tokens accepted"
    if share < limits.collapsed:
        yield WatchFinding("acceptance-collapse", name, _ERROR, observed)
    elif before is not None and share < min(limits.low, limits.decayed * before):
        yield WatchFinding(
            "acceptance-decays", name, _WARNING, f"{observed}, after {before:.0%} before"
        )


def _drafted(before: ServiceSample, now: ServiceSample) -> tuple[float, float] | None:
    """Drafted and accepted tokens in between; None where the server began anew or said nothing."""
    if before.drafted is None or now.drafted is None:
        return None
    drafted = now.drafted - before.drafted
    accepted = (now.accepted or 0) - (before.accepted or 0)
    return (drafted, accepted) if drafted >= 0 and accepted >= 0 else None


def gpu_state(answer: Gpus, limits: Thresholds) -> GpuSample:
    """Faults of the GPU by nvidia-smi's answer, as text; empty if there are none."""
    result = {"silent": "" if answer.gpus else answer.said[:200] or "no GPU"}
    for gpu in answer.gpus:
        if gpu.event_reasons & HEAT:
            result["heat"] = _words(gpu)
        elif gpu.event_reasons & BRAKE:
            result["brake"] = _words(gpu)
        slow = gpu.clock_mhz is not None and gpu.clock_mhz < limits.gb10_busy_mhz
        if "GB10" in gpu.name and slow and (gpu.busy_percent or 0) >= 80:
            result["low"] = _words(gpu)
    return GpuSample(**result)


def _words(one: Gpu) -> str:
    values = {"C": one.temperature_c, "W": one.power_w, "MHz": one.clock_mhz}
    values["% busy"] = one.busy_percent
    texts = (
        f"{'?' if value is None else format(value, 'g')} {unit}" for unit, value in values.items()
    )
    return f"{one.name}: {', '.join(texts)}"


def _gpu(ring: list[Sample], limits: Thresholds) -> Iterator[WatchFinding]:
    lately = [item.gpu for item in ring if ring[-1].at - item.at <= _COARSE and item.gpu]
    if len(lately) >= 3 and all(item.silent for item in lately[-3:]):
        yield WatchFinding("gpu-silent", None, _ERROR, f"nvidia-smi: {lately[-1].silent}")
    if len(lately) < 5:
        return
    for key, name in _HELD_BACK:
        seen = [observed for item in lately if (observed := getattr(item, key))]
        if len(seen) >= limits.throttled_share * len(lately):
            observed = f"at {len(seen)} of {len(lately)} looks within ten minutes: {seen[-1]}"
            yield WatchFinding(name, None, _ERROR, observed)


def _disks(ring: list[Sample], limits: Thresholds) -> Iterator[WatchFinding]:
    for path, (free, total) in ring[-1].disks.items():
        left = f"{path}: {free / _GIB:.0f} of {total / _GIB:.0f} GiB free"
        if free < limits.disk_least * total:
            yield WatchFinding("disk-full", None, _ERROR, left)
            continue
        hours = _hours_left([(item.at, item.disks[path][0]) for item in ring if path in item.disks])
        if hours is not None and hours < limits.disk_hours:
            severity = _ERROR if hours < limits.disk_urgent_hours else _WARNING
            yield WatchFinding("disk-fills", None, severity, f"{left}, full in about {hours:.0f} h")


def _hours_left(points: list[tuple[float, float]]) -> float | None:
    """Hours until nothing is free, by the trend of six hours; None where there is none.

    The last half hour has to go the same way: a fetch that has ended fills nothing any more.
    """
    now = points[-1][0]
    long = [point for point in points if now - point[0] <= 6 * _HOUR]
    short = [point for point in points if now - point[0] <= _HOUR / 2]
    if len(long) < 10 or long[-1][0] - long[0][0] < _HOUR:
        return None
    slope = max(_slope(long), _slope(short))
    return points[-1][1] / -slope / _HOUR if slope < 0 else None


def _slope(points: list[tuple[float, float]]) -> float:
    """Bytes per second, by least squares."""
    from statistics import StatisticsError, linear_regression  # for a watched disk alone: 20 ms

    try:
        return linear_regression(*zip(*points, strict=True)).slope if len(points) > 2 else 0.0
    except StatisticsError:  # all at one time
        return 0.0


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"

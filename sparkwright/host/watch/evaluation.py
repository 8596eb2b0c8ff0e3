"""Findings of the watch, from the samples of a day. The functions are pure.

``sparkwright doctor`` also uses these functions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from sparkwright.host.lib import metrics
from sparkwright.host.lib.gpu import Gpu, Gpus
from sparkwright.host.watch.state import Sample, ServiceSample, WatchFinding

#: Thresholds of findings, by name.
Thresholds = Mapping[str, float]
#: A service's sample and its time.
Timed = tuple[float, ServiceSample]
#: A finding's name, severity and observation.
Fault = tuple[str, str, str]
#: Bits of clocks_event_reasons.active. A software power cap (0x4) is normal on a busy RTX.
HEAT = 0x20 | 0x40
BRAKE = 0x80 | 0x08  # the power supply or the hardware limits the clock

_HOUR, _DAY = 3600.0, 86400.0
#: Ages in seconds: all samples of the last hour are kept, and one sample per ten minutes of the day
#: before.
_COARSE = 600.0
_ERROR, _WARNING = "error", "warning"
_GIB = 1024**3
#: Faults of a GPU: no answer, overheated, throttled, a low clock.
SILENT, _HOT, _BRAKED, _LOW = "gpu-silent", "gpu-heat", "gpu-power-brake", "gb10-low-power"


def kept(ring: list[Sample]) -> list[Sample]:
    """Return the ring buffer without samples that are too old or too close together."""
    if not ring:
        return []
    now = ring[-1].at
    samples: list[Sample] = []
    for sample in ring:
        age = now - sample.at
        close = age > _HOUR and samples and sample.at - samples[-1].at < _COARSE
        if 0 <= age <= _DAY and not close:
            samples.append(sample)
    return samples


def judge(ring: list[Sample], boots: Mapping[str, float], limits: Thresholds) -> list[WatchFinding]:
    """Return the present findings.

    Args:
        boots: service -> longest first boot, in seconds.
    """
    if not ring:
        return []
    faults: list[tuple[str | None, Fault]] = []
    faults += [(None, fault) for fault in (*_gpu(ring, limits), *_disks(ring, limits))]
    for name, seconds in boots.items():
        if samples := _of(ring, name):
            faults += [(name, fault) for fault in _service(seconds, samples, limits)]
    return [WatchFinding(name, service, level, seen) for service, (name, level, seen) in faults]


def carried(
    findings: Iterable[WatchFinding], before: Iterable[WatchFinding], now: float
) -> list[WatchFinding]:
    """Return the findings with ``since``: the start of each uninterrupted fault."""
    since = {item.subject: item.since for item in before}
    return [replace(item, since=since.get(item.subject, now)) for item in findings]


def _of(ring: list[Sample], name: str) -> list[Timed]:
    """Return a service's part of every sample.

    The series starts again after a switch, which restarts services on purpose and tests them
    itself.
    """
    samples: list[Timed] = []
    for sample in ring:
        if sample.switching:
            samples.clear()
        elif name in sample.services:
            samples.append((sample.at, sample.services[name]))
    return samples


def _lasting(samples: list[Timed], holds: Callable[[ServiceSample], bool]) -> float:
    """Return the seconds for which a condition has held without a break, up to the newest
    sample."""
    since = samples[-1][0]
    for at, sample in reversed(samples):
        if not holds(sample):
            break
        since = at
    return samples[-1][0] - since


def _service(boot: float, samples: list[Timed], limits: Thresholds) -> Iterator[Fault]:
    now = samples[-1][1]
    if now.active == "failed":
        yield "given-up", _ERROR, f"the unit has failed after {now.restarts} restarts"
    else:
        yield from _restarted(samples, limits)
    seconds = _lasting(samples, lambda item: item.active == "active" and item.health != 200)
    if seconds > boot:
        seen = f"/health returned {now.health or 'nothing'} for {_text(seconds)}"
        yield "not-serving", _ERROR, seen
    seconds = _lasting(samples, lambda item: _still(item, now))
    if metrics.PROGRESSED in now.metrics and seconds >= limits["stuck_seconds"]:
        seen = f"{now[metrics.RUNNING]:.0f} requests ran without a token for {_text(seconds)}"
        yield "wedge", _ERROR, seen
    seconds = _lasting(samples, lambda item: item[metrics.CACHE] >= limits["cache_full"])
    if seconds >= limits["cache_seconds"]:
        seen = f"KV cache full for {_text(seconds)}: {now[metrics.WAITING]:.0f} requests wait"
        yield "kv-cache-full", _WARNING, seen
    yield from _acceptance(samples, limits)
    # Require two samples: during a deploy the state differs from the plan.
    if now.drift and len(samples) > 1 and samples[-2][1].drift:
        yield "drift", _WARNING, "; ".join(now.drift)


def _restarted(samples: list[Timed], limits: Thresholds) -> Iterator[Fault]:
    counts = [item.restarts for at, item in samples if samples[-1][0] - at <= _HOUR]
    risen = sum(max(0, now - before) for before, now in pairwise(counts))
    if risen >= limits["restarts_hour"]:
        yield "restarts", _ERROR if risen > 1 else _WARNING, f"{risen} restarts within an hour"


def _still(sample: ServiceSample, now: ServiceSample) -> bool:
    """Return whether requests ran without any output since the earlier sample."""
    return (
        sample.health == 200
        and sample[metrics.RUNNING] > 0
        and sample.metrics.get(metrics.PROGRESSED) == now.metrics.get(metrics.PROGRESSED)
    )


def _acceptance(samples: list[Timed], limits: Thresholds) -> Iterator[Fault]:
    """Compare the drafter's recent acceptance with its earlier acceptance. Recent samples span ten
    minutes and enough drafts; otherwise all samples since the server's start.
    """
    risen = [_drafted(before, now) for (_, before), (_, now) in pairwise(samples)]
    least, drafted, accepted = limits["drafted"], 0.0, 0.0
    while risen and (more := risen[-1]) and (
        drafted < least or samples[-1][0] - samples[len(risen)][0] < _COARSE
    ):  # fmt: skip
        drafted, accepted = drafted + more[0], accepted + more[1]
        risen.pop()
    if drafted < least:
        return
    share = accepted / drafted
    earlier = [item for item in risen if item]
    total = sum(item[0] for item in earlier)
    before = sum(item[1] for item in earlier) / total if total >= least else None
    observed = f"{share:.1%} of {drafted:.0f} drafted tokens accepted"
    if share < limits["collapsed"]:
        yield "acceptance-collapse", _ERROR, observed
    elif before is not None and share < min(limits["low"], limits["decayed"] * before):
        yield "acceptance-decays", _WARNING, f"{observed}; earlier: {before:.0%}"


def _drafted(before: ServiceSample, now: ServiceSample) -> tuple[float, float] | None:
    """Return the drafted and accepted tokens between two samples; None if the server restarted or
    did not report these counters.
    """
    if metrics.DRAFTED not in before.metrics or metrics.DRAFTED not in now.metrics:
        return None
    drafted = now[metrics.DRAFTED] - before[metrics.DRAFTED]
    accepted = now[metrics.ACCEPTED] - before[metrics.ACCEPTED]
    return (drafted, accepted) if drafted >= 0 and accepted >= 0 else None


def gpu_state(answer: Gpus, limits: Thresholds) -> dict[str, str]:
    """Return faults of the GPU in nvidia-smi's answer, as text by name; empty without faults."""
    faults = {} if answer.gpus else {SILENT: answer.message[:200] or "no GPU"}
    for gpu in answer.gpus:
        if gpu.event_reasons & HEAT:
            faults[_HOT] = _figures(gpu)
        elif gpu.event_reasons & BRAKE:
            faults[_BRAKED] = _figures(gpu)
        slow = gpu.clock_mhz is not None and gpu.clock_mhz < limits["gb10_busy_mhz"]
        if "GB10" in gpu.name and slow and (gpu.busy_percent or 0) >= 80:
            faults[_LOW] = _figures(gpu)
    return faults


def _figures(gpu: Gpu) -> str:
    values = {"C": gpu.temperature_c, "W": gpu.power_w, "MHz": gpu.clock_mhz}
    values["% busy"] = gpu.busy_percent
    texts = (
        f"{'?' if value is None else format(value, 'g')} {unit}" for unit, value in values.items()
    )
    return f"{gpu.name}: {', '.join(texts)}"


def _gpu(ring: list[Sample], limits: Thresholds) -> Iterator[Fault]:
    recent = (item.gpu for item in ring if ring[-1].at - item.at <= _COARSE)
    lately = [faults for faults in recent if faults is not None]
    if len(lately) >= 3 and all(SILENT in faults for faults in lately[-3:]):
        yield SILENT, _ERROR, f"nvidia-smi: {lately[-1][SILENT]}"
    for name in (_HOT, _BRAKED, _LOW) if len(lately) >= 5 else ():
        texts = [faults[name] for faults in lately if name in faults]
        if len(texts) >= limits["throttled_share"] * len(lately):
            looks = f"in {len(texts)} of {len(lately)} samples within ten minutes"
            yield name, _ERROR, f"{looks}: {texts[-1]}"


def _disks(ring: list[Sample], limits: Thresholds) -> Iterator[Fault]:
    for path, (free, total) in ring[-1].disks.items():
        left = f"{path}: {free / _GIB:.0f} of {total / _GIB:.0f} GiB free"
        if free < limits["disk_least"] * total:
            yield "disk-full", _ERROR, left
            continue
        hours = _hours_left([(item.at, item.disks[path][0]) for item in ring if path in item.disks])
        if hours is not None and hours < limits["disk_hours"]:
            severity = _ERROR if hours < limits["disk_urgent_hours"] else _WARNING
            yield "disk-fills", severity, f"{left}, full in about {hours:.0f} h"


def _hours_left(points: list[tuple[float, float]]) -> float | None:
    """Return the hours until the disk is full, from the trend of six hours; None if no trend fills
    the disk.

    The last half hour must show the same trend: a finished fetch fills the disk no further.
    """
    now = points[-1][0]
    long = [point for point in points if now - point[0] <= 6 * _HOUR]
    short = [point for point in points if now - point[0] <= _HOUR / 2]
    if len(long) < 10 or long[-1][0] - long[0][0] < _HOUR:
        return None
    slope = max(_slope(long), _slope(short))
    return points[-1][1] / -slope / _HOUR if slope < 0 else None


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope in bytes per second, by least squares."""
    # The import takes 20 ms, and only a watched disk needs it.
    from statistics import StatisticsError, linear_regression

    try:
        return linear_regression(*zip(*points, strict=True)).slope if len(points) > 2 else 0.0
    except StatisticsError:  # all points have the same time
        return 0.0


def _text(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"

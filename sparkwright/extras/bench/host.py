"""What a host says of itself before, under and after the load (sparkwright/host/bench.py)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkwright.catalog.data import Scalar
from sparkwright.extras.bench.results import GpuRun, ImageRun
from sparkwright.host.bench import BenchAnswer, Running
from sparkwright.host.lib.records import decode
from sparkwright.plan.plan import ServicePlan


@dataclass(frozen=True)
class Facts(BenchAnswer):
    """A host's answer, and its planned releases by service."""

    planned: dict[str, str] = field(default_factory=dict)


def facts(answer: Mapping[str, Any]) -> Facts:
    """A host's answer, typed."""
    return decode(Facts, dict(answer))


def gpu_of(before: Facts, under_load: Facts | None, after: Facts | None) -> GpuRun:
    """The GPU's state over the run: clocks and power under load alone, the highest temperature.

    An idle GPU clocks down within a second: its clock before or after says nothing of the run.
    """
    samples = under_load.samples if under_load else ()
    seen = [one for one in (before.gpu, *samples, after and after.gpu) if one]
    clocks = [one.clock_mhz for one in samples if one.clock_mhz is not None]
    most = [one.clock_max_mhz for one in seen if one.clock_max_mhz is not None]
    heat = [one.temperature_c for one in seen if one.temperature_c is not None]
    watts = [one.power_w for one in samples if one.power_w is not None]
    return GpuRun(
        name=before.gpu.name if before.gpu else "unknown GPU",
        driver=before.gpu.driver if before.gpu else None,
        sm_clock_mhz=statistics.median(clocks) if clocks else None,
        sm_clock_max_mhz=max(most) if most else None,
        temperature_c=max(heat) if heat else None,
        power_w=statistics.median(watts) if watts else None,
    )


def image_of(running: Running, plan: ServicePlan) -> ImageRun:
    """The image with the tag that its release was made for; without one where that is not known."""
    name = (running.image or plan.image.name).rpartition(":")[0]
    return ImageRun(name=f"{name}:{running.tag}" if running.tag else name, digest=running.digest)


def settings_of(plan: ServicePlan) -> dict[str, Scalar]:
    """The vLLM arguments that may matter to a comparison: single values, and the draft's length."""
    found: dict[str, Scalar] = {
        key: value for key, value in plan.arguments if isinstance(value, bool | int | float | str)
    }
    speculative = dict(plan.arguments).get("speculative_config")
    if isinstance(speculative, dict):
        length = speculative.get("num_speculative_tokens")
        if length is not None:
            found["num_speculative_tokens"] = length
    return found


def changed(before: Facts, after: Facts, service: str) -> Iterator[str]:
    """What is not the same after the run: its figures are then of neither."""
    old, new = before.services.get(service), after.services.get(service)
    if old and new and (old.release, old.image) != (new.release, new.image):
        yield f"release {old.release} ran before and {new.release} after"
    drivers = [one.gpu and one.gpu.driver for one in (before, after)]
    if drivers[0] != drivers[1]:
        yield f"driver {drivers[0]} before and {drivers[1]} after"

"""What a host says of itself before, under and after the load (roles/bench/host/facts.py)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from sparkwright.bench.results import GpuRun, ImageRun
from sparkwright.catalog.data import Scalar
from sparkwright.plan.plan import ServicePlan


class _Told(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Running(_Told):
    """One service as its container and its release's files have it; None where there is none.

    Attributes:
        image: the name on the host, made of the digest.
        models: repository -> commit, by what is mounted.
    """

    vllm: str | None = None
    release: str | None = None
    recipe: str | None = None
    tag: str | None = None
    image: str | None = None
    digest: str | None = None
    models: dict[str, str] = {}


class Facts(_Told):
    """A host's answer. ``gpu`` in nvidia-smi's own words; ``planned`` service -> release's id."""

    gpu: dict[str, str | None] = {}
    services: dict[str, Running] = {}
    samples: tuple[dict[str, str | None], ...] = ()
    planned: dict[str, str] = {}


def gpu_of(before: Facts, under_load: Facts | None, after: Facts | None) -> GpuRun:
    """The GPU's state over the run: clocks and power under load alone, the highest temperature.

    An idle GPU clocks down within a second: its clock before or after says nothing of the run.
    """
    samples = under_load.samples if under_load else ()
    seen = [before.gpu, *samples, *([after.gpu] if after else [])]
    clocks = _numbers(samples, "sm_clock_mhz")
    most = _numbers(seen, "sm_clock_max_mhz")
    heat = _numbers(seen, "temperature_c")
    watts = _numbers(samples, "power_w")
    return GpuRun(
        name=before.gpu.get("name") or "unknown GPU",
        driver=before.gpu.get("driver"),
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
    if before.gpu.get("driver") != after.gpu.get("driver"):
        yield f"driver {before.gpu.get('driver')} before and {after.gpu.get('driver')} after"


def _numbers(samples: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """Those that are numbers: GB10 answers some of its fields with ``[N/A]``."""
    found = []
    for sample in samples:
        try:
            found.append(float(str(sample.get(key)).split()[0]))
        except (ValueError, IndexError):
            continue
    return found

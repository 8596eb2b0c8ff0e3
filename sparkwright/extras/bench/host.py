"""What a host says of itself before, under and after the load (sparkwright/host/bench.py)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sparkwright.catalog.data import Scalar
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.engines import engine, metric_names
from sparkwright.extras.bench.results import GpuRun, ImageRun
from sparkwright.host import bench
from sparkwright.host.bench import BenchAnswer, BenchRequest, BenchService, Running
from sparkwright.plan.plan import ServicePlan

if TYPE_CHECKING:
    from sparkwright.run.state import HostRun

#: Samples of the GPU under load, one a second, and how long the program waits for the load: the
#: generator takes 10 to 20 s to start.
_SAMPLES, _SECONDS = 15, 90


@dataclass(frozen=True)
class Facts(BenchAnswer):
    """A host's answer, and its planned releases by service."""

    planned: dict[str, str] = field(default_factory=dict)


def ask(hosts: Hosts, *, under_load: bool = False) -> dict[str, Facts]:
    """Facts of the hosts that answer: their services and GPUs; or the GPU while a service works."""
    return hosts.ask(partial(_facts, samples=_SAMPLES if under_load else 0)).answers


def _facts(host: Any, run: HostRun, *, samples: int) -> Facts:
    from sparkwright.facts.asking import ask

    request = BenchRequest(
        services=tuple(
            BenchService(
                service.name,
                service.home,
                service.gate.address,
                service.gate.port,
                engine(service.gate.engine).probes.version,
            )
            for service in run.services
        ),
        samples=samples,
        seconds=_SECONDS,
        state=f"{run.settings.services_root}/state",
        metric_names=metric_names(),
    )
    answer = ask(host, bench, request, BenchAnswer, timeout=_SECONDS + 60)
    return Facts(
        **vars(answer), planned={service.name: service.release for service in run.services}
    )


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

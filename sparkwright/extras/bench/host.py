"""Facts of a host before and under load: services and hardware."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

from sparkwright.catalog.data import Scalar
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.extras.bench.results import ImageRun
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.metrics import RUNNING
from sparkwright.host.load import HostLoad
from sparkwright.host.service import Service
from sparkwright.plan.plan import ServicePlan

if TYPE_CHECKING:
    from sparkwright.run.state import HostRun

#: Number of samples of the GPU under load, one per second, and seconds to wait for the load: the
#: generator takes 10 to 20 s to start.
_SAMPLES, _SECONDS = 15, 90


@dataclass(frozen=True)
class Facts:
    """Facts of a host.

    Attributes:
        gpu: the first GPU.
        samples: samples of the GPU under load.
        running: service with a running container -> the record of its release.
        planned: releases by service.
        sleeping: exclusive services that sleep -> the running service of their group.
    """

    gpu: Gpu | None = None
    samples: tuple[Gpu, ...] = ()
    running: dict[str, Service] = field(default_factory=dict)
    planned: dict[str, str] = field(default_factory=dict)
    sleeping: dict[str, str] = field(default_factory=dict)


def ask(hosts: Hosts, *, under_load: bool = False) -> dict[str, Facts]:
    """Return the facts of the hosts that answer; under load, with samples of the GPU while a
    service works.
    """
    return hosts.ask(partial(facts_of, samples=_SAMPLES if under_load else 0)).answers


def facts_of(host: Any, run: HostRun, *, samples: int) -> Facts:
    """Return the facts of one host.

    Raises:
        HostError: the host's facts can't be read; the message is the reason, in one line.
    """
    from sparkwright.run.observation import status_of
    from sparkwright.run.questions import current_load

    first = current_load(host, run)
    seen = tuple(islice(_under_load(partial(current_load, host, run)), samples))
    status = status_of(host, run, texts=False)
    running = {
        name: kept.service
        for name, service in status.services.items()
        if service.container
        and service.container.running
        and (kept := service.releases.get(service.container.release or ""))
        and kept.service
    }
    planned = {service.name: service.release for service in run.services}
    return Facts(next(iter(first.gpus), None), seen, running, planned, status.sleeping)


def _under_load(look: Callable[[], HostLoad]) -> Iterator[Gpu]:
    """Yield the first GPU about once a second while any service answers requests."""
    end, begun = time.monotonic() + _SECONDS, False
    while time.monotonic() < end:
        load = look()
        busy = any((figures or {}).get(RUNNING) for figures in load.services.values())
        if begun and not busy:
            return
        begun = busy
        yield from load.gpus[:1] if busy else ()
        time.sleep(1)


def gpu_of(before: Facts, loaded: Facts | None) -> Gpu:
    """Return the GPU's state over the run: clock, power and temperature come from samples under
    load.

    An idle GPU lowers its clock within a second: its clock before or after the run is not the clock
    under load.
    """
    first, samples = before.gpu or Gpu("unknown GPU"), loaded.samples if loaded else ()

    def over(statistic: Callable[[list[float]], float], name: str) -> float | None:
        values = [value for gpu in samples if (value := getattr(gpu, name)) is not None]
        return statistic(values) if values else None

    return Gpu(
        name=first.name, driver=first.driver, clock_max_mhz=first.clock_max_mhz,
        clock_mhz=over(median, "clock_mhz"), temperature_c=over(max, "temperature_c"),
        power_w=over(median, "power_w"),
    )  # fmt: skip


def image_of(running: Service) -> ImageRun:
    """The image, with the tag of the release."""
    name, _, pin = running.image.rpartition(":")
    digest = pin.replace("-", ":", 1) if pin.startswith("sha256-") else None
    return ImageRun(name=f"{name}:{running.tag}", digest=digest)


def settings_of(plan: ServicePlan) -> dict[str, Scalar]:
    """The arguments that may matter to a comparison: single values, and the draft's length."""
    arguments = dict(plan.arguments)
    speculative = arguments.get("speculative_config")
    drafted = speculative.get("num_speculative_tokens") if isinstance(speculative, dict) else None
    return {
        key: value
        for key, value in {**arguments, "num_speculative_tokens": drafted}.items()
        if isinstance(value, bool | int | float | str)
    }


def remarks(name: str, before: Facts, loaded: Facts | None) -> Iterator[str]:
    """Remarks that a reader of a service's figures needs."""
    planned = before.planned.get(name)
    release, later = (facts and name in facts.running and facts.running[name].release
                      for facts in (before, loaded))  # fmt: skip
    if release != planned:
        yield f"release {release} runs, not the planned {planned}: its arguments are unknown"
    if loaded and release != later:
        yield f"release {release} ran at the start, and {later or None} at the end"
    if loaded is None or not loaded.samples:
        yield "the GPU was not observed under load: its clock is unknown"

"""Facts of a host before, under and after the load: running services and hardware."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from sparkwright.catalog.data import Scalar
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.engines import engine, metric_names
from sparkwright.extras.bench import probe
from sparkwright.extras.bench.probe import ProbeAnswer, ProbeRequest
from sparkwright.extras.bench.results import ImageRun
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.service import Service
from sparkwright.plan.plan import ServicePlan

if TYPE_CHECKING:
    from sparkwright.run.state import HostRun

#: Samples of the GPU under load, one a second, and the program's wait for the load: the generator
#: takes 10 to 20 s to start.
_SAMPLES, _SECONDS = 15, 90
_DIGEST = re.compile(r":sha256-([0-9a-f]{64})$")


@dataclass(frozen=True)
class Facts:
    """Facts of a host.

    Attributes:
        running: services whose containers run, by the records of their releases.
        planned: releases by service.
        sleeping: exclusive services that sleep -> the running service of their group.
    """

    probe: ProbeAnswer
    running: dict[str, Service] = field(default_factory=dict)
    planned: dict[str, str] = field(default_factory=dict)
    sleeping: dict[str, str] = field(default_factory=dict)


def ask(hosts: Hosts, *, under_load: bool = False) -> dict[str, Facts]:
    """Facts of the hosts that answer: their services and GPUs; or the GPU while a service works."""
    return hosts.ask(partial(facts_of, samples=_SAMPLES if under_load else 0)).answers


def facts_of(host: Any, run: HostRun, *, samples: int) -> Facts:
    """Ask one host.

    Raises:
        HostError: gives the reason, in one line.
    """
    from sparkwright.facts.asking import ask
    from sparkwright.run.observation import status_of

    services = {
        service.name: (gate.address, gate.port, engine(gate.engine).probes.version)
        for service in run.services
        for gate in [service.gate]
    }
    root = run.settings.services_root
    request = ProbeRequest(services, samples, _SECONDS, metric_names(), root)
    probed = ask(host, probe, request, ProbeAnswer, timeout=_SECONDS + 60)
    if samples:
        return Facts(probed)
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
    return Facts(probed, running, planned, status.sleeping)


def gpu_of(before: Facts, under_load: Facts | None, after: Facts | None) -> Gpu:
    """The GPU's state over the run: clocks and power under load alone, the highest temperature.

    An idle GPU lowers its clock within a second: its clock before or after the run proves nothing.
    """
    samples = under_load.probe.samples if under_load else ()
    first, last = before.probe.gpu, after.probe.gpu if after else None
    looks = tuple(filter(None, (first, *samples, last)))

    def values(looks: Iterable[Gpu], name: str) -> list[float]:
        return [value for look in looks if (value := getattr(look, name)) is not None]

    clocks, watts = values(samples, "clock_mhz"), values(samples, "power_w")
    return Gpu(
        name=first.name if first else "unknown GPU",
        driver=first.driver if first else None,
        clock_mhz=statistics.median(clocks) if clocks else None,
        clock_max_mhz=max(values(looks, "clock_max_mhz"), default=None),
        temperature_c=max(values(looks, "temperature_c"), default=None),
        power_w=statistics.median(watts) if watts else None,
    )


def image_of(running: Service | None, plan: ServicePlan) -> ImageRun:
    """The image with its release's tag; without a tag if it is unknown."""
    name, _, _ = (running.image if running else plan.image.name).rpartition(":")
    if running is None:
        return ImageRun(name=name)
    digest = _DIGEST.search(running.image)
    return ImageRun(name=f"{name}:{running.tag}", digest=digest and f"sha256:{digest[1]}")


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


def remarks(
    name: str, before: Facts, under_load: Facts | None, after: Facts | None
) -> Iterator[str]:
    """Remarks that a reader of a service's figures needs."""
    planned = before.planned.get(name)
    release, later = (facts and name in facts.running and facts.running[name].release
                      for facts in (before, after))  # fmt: skip
    if not release:
        yield "its container was not found on the host: image, models and release are unknown"
    elif release != planned:
        yield f"release {release} runs, not the planned {planned}: its arguments are not recorded"
    if after is not None:
        if release and release != later:
            yield f"release {release} ran before and {later or None} after"
        drivers = [facts.probe.gpu and facts.probe.gpu.driver for facts in (before, after)]
        if drivers[0] != drivers[1]:
            yield f"driver {drivers[0]} before and {drivers[1]} after"
    if under_load is None or not under_load.probe.samples:
        yield "the GPU was not seen under load: its clock is unknown"

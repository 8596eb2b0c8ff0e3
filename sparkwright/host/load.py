"""Reports what this host does now: one look at services, GPUs and memory. Changes nothing."""

from __future__ import annotations

import time
from pathlib import Path

from sparkwright.host.contracts.load import HostLoad, LoadRequest, ServiceLoad
from sparkwright.host.contracts.watch import WatchConfig
from sparkwright.host.lib import documents, exclusive, gpu, metrics
from sparkwright.host.lib.http import Server
from sparkwright.host.lib.memory import meminfo


def service(server: Server) -> ServiceLoad | None:
    """A service's counters and gauges."""
    found = metrics.ask(server)
    if found is None:
        return None
    drafted = found.get(metrics.DRAFTED)
    return ServiceLoad(
        generated=found.get(metrics.GENERATED, 0.0),
        running=found.get(metrics.RUNNING, 0.0),
        waiting=found.get(metrics.WAITING, 0.0),
        cache=found.get(metrics.CACHE, 0.0),
        drafted=drafted,
        accepted=None if drafted is None else found.get(metrics.ACCEPTED, 0.0),
    )


def watched(path: str) -> dict[str, tuple[str, int]]:
    """The services that the watch looks at."""
    config = documents.record(WatchConfig, path)
    return {one.name: (one.address, one.port) for one in config.services} if config else {}


def main(request: LoadRequest) -> HostLoad:
    """Answer a request."""
    known = request.services or watched(request.watch)
    asked = gpu.Question(gpu.LOAD)
    asleep = exclusive.sleeping(Path(request.state)) if request.state else {}
    services = {
        name: None if name in asleep else service(Server(*at)) for name, at in known.items()
    }
    now, memory = time.monotonic(), meminfo()
    return HostLoad(
        at=now,
        services=services,
        gpus=asked.answer().gpus,
        memory=memory.get("MemTotal", 0),
        available=memory.get("MemAvailable", 0),
        sleeping=asleep,
    )

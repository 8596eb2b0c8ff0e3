"""Report this host's present load: one sample of services, GPUs and memory. Change nothing."""

import time
from pathlib import Path

from sparkwright.host.lib import documents, exclusive, gpu, metrics, ranks, records
from sparkwright.host.lib.memory import meminfo
from sparkwright.host.watch.state import WatchConfig


@records.dataclass(frozen=True)
class LoadRequest:
    """Request for the load of a host's services.

    Attributes:
        services: name -> address and port of the engine itself.
        services_root: root of the services; without a plan, the watch's configuration there names
            the services.
        metric_names: an engine's name of a metric -> the neutral name (``host/lib/metrics.py``).
    """

    services: dict[str, tuple[str, int]] = records.field(default_factory=dict)
    services_root: str = ""
    metric_names: dict[str, str] = records.field(default_factory=dict)


@records.dataclass(frozen=True)
class HostLoad:
    """Load of a host at one time.

    Attributes:
        at: seconds of the host's monotonic clock.
        services: metrics by their neutral names (``host/lib/metrics.py``), counters since the
            engine started; None for a service that does not report them.
        memory, available: total and available bytes of the host's memory.
        sleeping: sleeping exclusive service -> the running service of its group.
    """

    at: float
    services: dict[str, dict[str, float] | None]
    gpus: tuple[gpu.Gpu, ...] = ()
    memory: int = 0
    available: int = 0
    sleeping: dict[str, str] = records.field(default_factory=dict)


def main(request: LoadRequest) -> HostLoad:
    """Return the present load."""
    addresses, root = request.services, Path(request.services_root)
    if not addresses and (config := documents.record(WatchConfig, root / "watch/config.json")):
        addresses = {item.name: (item.address, item.port) for item in config.services}
    question = gpu.Question(gpu.LOAD)
    asleep = exclusive.sleeping(root / "state")
    services = {
        name: metrics.ask(ranks.server(root / "services" / name, *at), request.metric_names)
        if name not in asleep
        else None
        for name, at in addresses.items()
    }
    now, memory = time.monotonic(), meminfo()
    return HostLoad(
        at=now,
        services=services,
        gpus=question.answer().gpus,
        memory=memory.get("MemTotal", 0),
        available=memory.get("MemAvailable", 0),
        sleeping=asleep,
    )

"""Reports the GPU of a benchmarked host, at rest or under load, and its engines' versions.

Runs on the host, and changes nothing. Unknown values are None.
"""

import os
import time

from sparkwright.host.lib import gpu, metrics, ranks
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.lib.records import dataclass, field


@dataclass(frozen=True)
class ProbeRequest:
    """Request for the GPU's present state and versions; with ``samples``, for the GPU under load.

    Attributes:
        services: name -> address and port of the engine, and the route of its version.
        samples: number of samples of the GPU, one a second while a service is busy; 0 for none.
        seconds: longest wait for the load.
        metric_names: an engine's name of a metric -> the neutral name (``host/lib/metrics.py``).
        services_root: directory of the services, which has their keys.
    """

    services: dict[str, tuple[str, int, str]]
    samples: int = 0
    seconds: float = 90.0
    metric_names: dict[str, str] = field(default_factory=dict)
    services_root: str = ""


@dataclass(frozen=True)
class ProbeAnswer:
    """The first GPU before or after the load, or under load.

    Attributes:
        kernel: Linux's release.
        versions: service -> version that its engine reports.
    """

    kernel: str
    gpu: Gpu | None = None
    versions: dict[str, str | None] = field(default_factory=dict)
    samples: tuple[Gpu, ...] = ()


def first_gpu() -> Gpu | None:
    """The first GPU now; None if missing."""
    return next(iter(gpu.ask().gpus), None)


def version(server: Server, route: str) -> str | None:
    """An engine's version as it reports it."""
    try:
        return str(server.get(route).json()["version"]) if route else None
    except (NoAnswer, ValueError, KeyError, TypeError):
        return None


def under_load(request: ProbeRequest) -> tuple[Gpu, ...]:
    """The GPU once a second while any service is busy; as long as the request says at most."""
    end = time.monotonic() + request.seconds
    servers = [
        ranks.server(f"{request.services_root}/services/{name}", address, port)
        for name, (address, port, _) in request.services.items()
    ]
    samples: list[Gpu] = []
    while time.monotonic() < end and len(samples) < request.samples:
        totals = [metrics.ask(server, request.metric_names) or {} for server in servers]
        if any(total.get(metrics.RUNNING, 0.0) > 0 for total in totals):
            samples += filter(None, (first_gpu(),))
        elif samples:
            break
        time.sleep(1)
    return tuple(samples)


def main(request: ProbeRequest) -> ProbeAnswer:
    """Answer a request."""
    kernel = os.uname().release
    if request.samples:
        return ProbeAnswer(kernel, samples=under_load(request))
    services = request.services.items()
    versions = {name: version(Server(at, port), route) for name, (at, port, route) in services}
    return ProbeAnswer(kernel, first_gpu(), versions)

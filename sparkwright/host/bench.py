"""Reports what a benchmark ran on: GPU and its state, versions, and the bytes that serve.

Runs on the host as root, to read from Docker. Changes nothing. What is unknown is None.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import docker, documents, exclusive, gpu, metrics
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.http import NoAnswer, Server


@dataclass(frozen=True)
class BenchService:
    """A service that is measured; ``version`` is the route of its engine's version."""

    name: str
    home: str
    address: str
    port: int
    version: str = ""


@dataclass(frozen=True)
class BenchRequest:
    """What is reported: versions and what serves, or with ``samples`` the GPU under load.

    Attributes:
        samples: of the GPU, one a second while a service is busy; 0 for none.
        seconds: how long the load is waited for.
        state: directory that says which exclusive services sleep.
        metric_names: an engine's name of a metric -> the neutral one (``host/lib/metrics.py``).
    """

    services: tuple[BenchService, ...] = ()
    samples: int = 0
    seconds: float = 90.0
    state: str = ""
    metric_names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Running:
    """One service as its container and its release's files have it; None where there is none.

    Attributes:
        engine: version of its engine, as that reports it.
        image: the name on the host, made of the digest.
        models: repository -> commit, by what is mounted.
    """

    engine: str | None = None
    release: str | None = None
    recipe: str | None = None
    tag: str | None = None
    image: str | None = None
    digest: str | None = None
    models: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchAnswer:
    """The first GPU before or after the load; what serves; or the GPU under load.

    Attributes:
        kernel: Linux's release; None where the program of another version answers.
        sleeping: exclusive services that sleep -> the one of their group that runs.
    """

    gpu: Gpu | None = None
    services: dict[str, Running] = field(default_factory=dict)
    samples: tuple[Gpu, ...] = ()
    kernel: str | None = None
    sleeping: dict[str, str] = field(default_factory=dict)


#: First line of a release's compose file (templates/serving/compose.yaml.j2).
_WRITTEN = re.compile(r"# Written by sparkwright: service \S+, recipe (\S+), tag (\S+)\.\n")
_DIGEST = re.compile(r":sha256-([0-9a-f]{64})$")
_COMMIT = re.compile(r"/(?P<org>[^/]+?)--(?P<name>[^/]+)/(?P<commit>[0-9a-f]{40})$")


def first_gpu() -> Gpu | None:
    """The first GPU now; None where there is none."""
    return next(iter(gpu.ask().gpus), None)


def version(service: BenchService) -> str | None:
    """The engine's version as it reports it."""
    if not service.version:
        return None
    try:
        answer = Server(service.address, service.port).get(service.version)
        return str(answer.json()["version"])
    except (NoAnswer, ValueError, KeyError, TypeError):
        return None


def busy(service: BenchService, names: Mapping[str, str]) -> bool:
    """Whether the service works on any request."""
    totals = metrics.ask(Server(service.address, service.port), names) or {}
    return totals.get(metrics.RUNNING, 0.0) > 0


def running(service: BenchService) -> Running:
    """What serves: release, recipe and tag, image and digest, models and their commits."""
    engine = version(service)
    container = docker.container(f"sparkwright-{service.name}")
    if container is None or not container["State"]["Running"]:
        return Running(engine)
    release = docker.release_of(container)
    image = str(container["Config"]["Image"])
    digest = _DIGEST.search(image)
    mounts = (str(one.get("Source")) for one in container.get("Mounts") or [])
    models = [match for source in mounts if (match := _COMMIT.search(source))]
    compose = documents.text(Path(service.home, "releases", str(release), "compose.yaml"))
    written = _WRITTEN.match(f"{compose or ''}\n")
    return Running(
        engine=engine,
        release=release,
        recipe=written and written[1],
        tag=written and written[2],
        image=image,
        digest=digest and f"sha256:{digest[1]}",
        models={f"{one['org']}/{one['name']}": one["commit"] for one in models},
    )


def under_load(request: BenchRequest) -> tuple[Gpu, ...]:
    """The GPU once a second while any service is busy; as long as the request says at most."""
    end = time.monotonic() + request.seconds
    samples: list[Gpu] = []
    while time.monotonic() < end and len(samples) < request.samples:
        if any(busy(service, request.metric_names) for service in request.services):
            samples += [one for one in (first_gpu(),) if one]
        elif samples:
            break
        time.sleep(1)
    return tuple(samples)


def main(request: BenchRequest) -> BenchAnswer:
    """Answer a request."""
    if request.samples:
        return BenchAnswer(samples=under_load(request))
    services = {service.name: running(service) for service in request.services}
    asleep = exclusive.sleeping(Path(request.state)) if request.state else {}
    return BenchAnswer(first_gpu(), services, kernel=os.uname().release, sleeping=asleep)

"""Bench: what the host says of itself, for ``sparkwright bench`` (which measures from outside)."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from sparkwright.host import bench as program
from sparkwright.smoke import own_address

#: Samples of the GPU under load, one a second, and how long is waited for the load: the generator
#: takes 10 to 20 s to start.
_SAMPLES, _SECONDS = 15, 90


def facts() -> None:
    """Tell what serves, and on what."""
    steps.verify("Bench: facts", _facts)


def under_load() -> None:
    """Tell the GPU's clocks, temperature and power while a service works."""
    steps.verify("Bench: the GPU under load", _under_load)


def _facts(host: Host, run: site.HostRun) -> Sequence[str]:
    return _ask(host, run, samples=0)


def _under_load(host: Host, run: site.HostRun) -> Sequence[str]:
    return _ask(host, run, samples=_SAMPLES)


def _ask(host: Host, run: site.HostRun, *, samples: int) -> Sequence[str]:
    services = [
        {
            "name": release.service.name,
            "home": release.home,
            "address": own_address(release.service),
            "port": release.service.port,
        }
        for release in run.wanted.releases
    ]
    request = {"services": services, "samples": samples, "seconds": _SECONDS}
    answer = remote.ask(host, "sparkwright-bench", program, request, timeout=_SECONDS + 60)
    planned = {release.service.name: release.id for release in run.wanted.releases}
    run.answer = {**answer, "planned": planned}
    return []

"""What lies on the hosts, listed and pruned: ``sparkwright models list|prune INVENTORY``."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import lock, preflight, remote, site, steps
from sparkwright.host import disk_usage as program


def listed() -> None:
    """List models, images and what belongs to them."""
    steps.verify("Models: list", _list)


def pruned() -> None:
    """Remove what neither the plan nor a kept release needs."""
    steps.verify("Models: prune", _prune)


def _list(host: Host, run: site.HostRun) -> Sequence[str]:
    return _ask(host, run, prune=False)


def _prune(host: Host, run: site.HostRun) -> Sequence[str]:
    run.probe = preflight.probe(host, run)
    lock.take(host, run)  # what somebody else's deploy fetches belongs to no release yet
    return _ask(host, run, prune=True)


def _ask(host: Host, run: site.HostRun, *, prune: bool) -> Sequence[str]:
    settings = run.plan.settings
    request = {
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        "wanted": [
            *run.wanted.models(),
            *(release.image for release in run.wanted.releases),
            *(pull.store for pull in run.wanted.pulls()),
        ],
        "keep_releases": settings.keep_releases,
        "prune": prune,
    }
    run.answer = remote.ask(host, "sparkwright-models", program, request, timeout=600)
    return []

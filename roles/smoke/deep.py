"""The deep smoke test, for ``sparkwright smoke INVENTORY``: all that a service has to do."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from sparkwright.host.smoke import deep
from sparkwright.smoke.deep import deep_request, deep_seconds


def smoke() -> None:
    """Ask each service for everything that its recipe promises; the answers are the command's."""
    steps.verify("Smoke: deep", _look)


def _look(host: Host, run: site.HostRun) -> Sequence[str]:
    releases = {release.service.name: release for release in run.wanted.releases}
    services = [deep_request(release, run.wanted.catalog) for release in releases.values()]
    answer = remote.ask(
        host,
        "sparkwright-smoke-deep",
        deep,
        {"services": services},
        timeout=sum(map(deep_seconds, services)) + 60,
    )
    run.answer = {
        name: {**told, "planned": releases[name].id, "recipe": releases[name].service.recipe}
        for name, told in answer.items()
    }
    return []

"""What hosts run and how it came to that: ``sparkwright status|history|diff INVENTORY``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from roles import door, preflight, remote, site, steps
from roles.serving.state import changes
from sparkwright.host import status as program
from sparkwright.smoke import own_address


def told() -> None:
    """What each host runs, its history, and what of it is not as planned."""
    steps.verify("Services: look", _look)


def ask(host: Host, run: site.HostRun, *, texts: bool) -> dict[str, Any]:
    """A host's story. One round trip."""
    request = {
        "services_root": run.plan.settings.services_root,
        "ports": {
            service.name: [own_address(service), service.port] for service in run.plan.services
        },
        "texts": texts,
    }
    answer: dict[str, Any] = remote.ask(host, "sparkwright-story", program, request, timeout=60)
    return answer


def _look(host: Host, run: site.HostRun) -> Sequence[str]:
    run.probe = preflight.probe(host, run)
    answer = ask(host, run, texts=True)
    planned = {
        release.service.name: {
            "release": release.id,
            "tag": release.service.image.tag,
            "texts": {"compose.yaml": release.compose, release.service.unit: release.unit},
            "drift": [*changes(run, release), *(["door"] if door.pending(run) else [])],
        }
        for release in run.wanted.releases
    }
    run.answer = {**answer, "planned": planned}
    return []

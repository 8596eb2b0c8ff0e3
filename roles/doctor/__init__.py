"""Doctor: what a host and its services show, for ``sparkwright doctor``. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from roles import preflight, remote, site, steps
from sparkwright.findings.render import data
from sparkwright.host import doctor as collect
from sparkwright.plan.release import Release
from sparkwright.preflight.judge import judge
from sparkwright.smoke import own_address

#: Seconds between the two looks at the metrics.
_BETWEEN = 5


def doctor() -> None:
    """Collect what is to be judged."""
    steps.verify("Doctor: look", _look)


def _look(host: Host, run: site.HostRun) -> Sequence[str]:
    settings = run.plan.settings
    request = {
        "services_root": settings.services_root,
        "models_root": settings.models_root,
        "seconds": _BETWEEN,
        "services": [
            {
                "name": release.service.name,
                "unit": release.service.unit,
                "address": own_address(release.service),
                "port": release.service.port,
                "home": release.home,
                "secrets": release.secrets,
            }
            for release in run.wanted.releases
        ],
    }
    asked = time.time()
    run.probe = preflight.probe(host, run)
    findings = judge(run.wanted, run.probe, now=(asked + time.time()) / 2)
    seen: dict[str, Any] = remote.ask(host, "sparkwright-doctor", collect, request, timeout=120)
    planned = {release.service.name: _planned(run, release) for release in run.wanted.releases}
    run.answer = {**seen, "planned": planned, "findings": data(findings)}
    return []


def _planned(run: site.HostRun, release: Release) -> dict[str, Any]:
    service = release.service
    image = run.wanted.catalog.images[service.image.image]
    return {
        "release": release.id,
        "tag": service.image.tag,
        "names": list(service.served_names),
        "boot_seconds": service.boot_seconds,
        "speculates": "speculative_config" in dict(service.arguments),
        "corrupts": any(
            issue.id == "prefix-caching-corrupts" and service.image.tag in issue.tags
            for issue in image.issues
        ),
    }

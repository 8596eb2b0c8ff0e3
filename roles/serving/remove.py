"""Leaving a host as it was found: ``sparkwright remove INVENTORY [--weights]``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import lock, preflight, remote, site, steps
from sparkwright.host import removal as program

#: How the command line says what goes: {"services": names or null, "weights": bool}.
WISH = "SPARKWRIGHT_REMOVE"


def remove() -> None:
    """Take services, releases, units, images and, on request, weights off the host."""
    steps.verify("Remove: services, units, images", _remove)


def _remove(host: Host, run: site.HostRun) -> Sequence[str]:
    run.probe = preflight.probe(host, run)
    lock.take(host, run)
    settings = run.plan.settings
    request = {
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        **json.loads(os.environ[WISH]),
    }
    run.answer = remote.ask(host, "sparkwright-remove", program, request, timeout=600)
    return []

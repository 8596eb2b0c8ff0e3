"""Serving: releases, units and the running services. Only what changed restarts."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import Any

from pyinfra.api.host import Host

from roles import remote, site, steps
from roles.serving.host import switch as program
from sparkwright.release import Release


def serving() -> None:
    """Put each service's release in place and have it run."""
    steps.step("Serving: releases, units, services", _pending, _act)


def secrets_text(run: site.HostRun) -> str:
    """The environment file with the key. vLLM reads VLLM_API_KEY and does not log it."""
    return f"VLLM_API_KEY={run.key.value}\n"


def changes(run: site.HostRun, release: Release) -> list[str]:
    """What is not as the release wants it, by the probe, as words of a sentence."""
    state = run.seen.services[release.service.name]
    unit = run.seen.units.get(release.service.unit, {})
    found = []
    if state.compose != _digest(release.compose) or state.current != release.id:
        found.append(f"release {release.id}" + (f" after {state.current}" if state.current else ""))
    if state.unit != _digest(release.unit) or unit.get("NeedDaemonReload") == "yes":
        found.append("unit")
    if state.secrets != _digest(secrets_text(run)) or state.secrets_mode != "600 0":
        found.append("API key")
    rewritten = bool(found)
    if unit.get("UnitFileState") != "enabled":
        found.append("start at boot")
    container = state.container
    if container is None or not container.running or unit.get("ActiveState") != "active":
        found.append("start")
    elif (
        rewritten
        # A run that was killed after it wrote and before it restarted.
        or container.release != release.id
        or state.newest > _epoch(container.created)
    ):
        found.append("restart")
    return found


def _pending(run: site.HostRun) -> Sequence[str]:
    return [
        f"service {release.service.name}: {', '.join(found)}"
        for release in run.wanted.releases
        if (found := changes(run, release))
    ]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    services: list[dict[str, Any]] = []
    for release in run.wanted.releases:
        found = changes(run, release)
        if not found:
            continue
        services.append(
            {
                "name": release.service.name,
                "home": release.home,
                "release": release.id,
                "unit": release.service.unit,
                "files": {
                    f"{release.directory}/compose.yaml": [release.compose, 0o640],
                    release.unit_path: [release.unit, 0o644],
                    release.secrets: [secrets_text(run), 0o600],
                },
                "restart": found[-1] in ("start", "restart"),
            }
        )
    remote.ask(host, "sparkwright-serving", (program,), {"services": services}, timeout=300)
    return _pending(run)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _epoch(created: str) -> float:
    """Docker gives nanoseconds, Python reads microseconds."""
    whole, _, fraction = created.rstrip("Z").partition(".")
    moment = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.UTC)
    return moment.timestamp() + float(f"0.{fraction or 0}")

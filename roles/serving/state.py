"""What of a service is not as its release wants it, by the probe."""

from __future__ import annotations

import hashlib

from roles import site
from sparkwright.plan.release import Release
from sparkwright.preflight.observation import ServiceState
from sparkwright.preflight.ports import unmanaged_containers
from sparkwright.text.timestamps import epoch


def secrets_text(run: site.HostRun) -> str:
    """The environment file with the key. vLLM reads VLLM_API_KEY and does not log it."""
    return f"VLLM_API_KEY={run.key.value}\n"


def changes(run: site.HostRun, release: Release) -> list[str]:
    """What is not as the release wants it, as words of a sentence."""
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
        or state.newest > epoch(container.created)
    ):
        found.append("restart")
    return found


def restarts(found: list[str]) -> bool:
    """Whether these changes stop or start the service."""
    return found[-1] in ("start", "restart")


def former(state: ServiceState, release: Release) -> str | None:
    """The release to go back to when this one is no good; None where there is none."""
    container = state.container
    runs = state.current if container and container.running else None
    return next((one for one in (state.good, runs) if one and one != release.id), None)


def rolls(run: site.HostRun) -> bool:
    """Whether the host serves already and is to be switched to something else: it has a turn."""
    return bool(unmanaged_containers(run.wanted, run.seen)) or any(
        (found := changes(run, release))
        and restarts(found)
        and (container := run.seen.services[release.service.name].container) is not None
        and container.running
        for release in run.wanted.releases
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

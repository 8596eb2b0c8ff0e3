"""Differences between rendered services and the observation of their host."""

from collections.abc import Mapping, Sequence

from sparkwright.config.secrets import Secret
from sparkwright.host.lib.exclusive import Group, member
from sparkwright.host.lib.systemd import RUNNING
from sparkwright.host.models.document import PAGE
from sparkwright.host.observe import FileState, Listener, Observation, ServiceState
from sparkwright.host.service import Service
from sparkwright.plan.missing import differs, digest
from sparkwright.text import marks, timestamps

#: Path -> text of the 0600 files with keys.
Secrets = Mapping[str, Secret]
#: Units without a service.
OWN_UNITS = ("sparkwright-gateway.service", "sparkwright-health.service", PAGE,
             "sparkwright-recover.service", "sparkwright-schedule.service",
             "sparkwright-wake.service", "sparkwright-watch.service")  # fmt: skip
#: States that systemd reports for a unit that is not meant to run.
RESTING = ("inactive", "failed")


def runs_instead(service: Service, observed: Observation) -> str | None:
    """Return the running member of a sleeping service's group; None if the service itself is to
    run.
    """
    if service.exclusive is None:
        return None
    runs = member(Group(service.members), observed.active.get(service.exclusive))
    return None if runs == service.name else runs


def changes(service: Service, secrets: Secrets, observed: Observation) -> list[str]:
    """Return the differences between a service and its host, as parts of a sentence.

    For a follower, only differences in the content that the head requests count: the head chooses
    the release, and the engine waits for the other ranks.
    """
    state = observed.services.get(service.name, ServiceState())
    unit, container = observed.units.get(service.unit, {}), state.container
    follower, current = service.follower, state.current == service.release
    result = []
    if state.compose != digest(service.compose) or not (current or follower):
        after = f" after {state.current}" if state.current else ""
        result.append(f"release {service.release}{' for its rank' if follower else after}")
    stale = state.unit != digest(service.unit_text) or unit.get("NeedDaemonReload") == "yes"
    if stale and (current or not follower):
        result.append("unit")
    changed = [
        name for name, text in service.contents.items() if state.files.get(name) != digest(text)
    ]
    result = result or [f"file {name}" for name in changed]
    if _key_differs(state.secrets, secrets[service.secrets], 0o600):
        result.append("ranks' key" if follower else "API key")
    result += [
        f"secret {name}"
        for name, path in service.tokens.items()
        # Read-only commands do not run the commands of secrets, so the output can't be compared.
        if path in secrets and _key_differs(state.tokens.get(name), secrets[path], 0o400)
    ]
    rewritten = bool(result)
    if not rewritten and state.record != digest(service.record):
        result.append("settings")
    if runs_instead(service, observed):
        result += [] if state.asleep else ["no start at boot"]
        same = container is not None and container.release == service.release
        naps = service.nap is not None and not rewritten and same
        resting = naps or unit.get("ActiveState", "inactive") in RESTING
        return result if resting else [*result, "stop"]
    if state.asleep and service.exclusive:
        result.append("awake")
    if unit.get("UnitFileState") != "enabled":
        result.append("start at boot")
    if follower:
        result += [] if unit.get("ActiveState") in RUNNING else ["start"]
    elif container is None or not container.running or unit.get("ActiveState") != "active":
        if state.stopped and state.stopped.holds(unit):
            result.append(marks.stopped(state.stopped, observed.time))
        result.append("start")
    elif (
        rewritten
        # A run was killed after it wrote the files and before it restarted the service.
        or container.release != service.release
        or state.newest > timestamps.epoch(container.created)
    ):
        result.append("restart")
    return result


def _key_differs(there: FileState | None, secret: Secret, mode: int) -> bool:
    """Return whether the file with a key or a secret is missing or has other content."""
    return differs(there, secret.value, mode) or bool(there and there.uid != 0)


def restarts(steps: Sequence[str]) -> bool:
    """Return whether these changes stop or start the service."""
    return bool(steps) and steps[-1] in ("start", "restart", "stop")


def former(state: ServiceState, release: str) -> str | None:
    """Return the release to go back to if this release does not answer; None if the host has no
    other release.
    """
    container = state.container
    runs = state.current if container and container.running else None
    return next((item for item in (state.good, runs) if item and item != release), None)


def active_of(services: Sequence[Service], observed: Observation) -> dict[str, str]:
    """The running member of each exclusive group, according to the host's observation."""
    return {
        service.exclusive: runs_instead(service, observed) or service.name
        for service in services
        if service.exclusive is not None
    }


def serves_already(services: Sequence[Service], secrets: Secrets, observed: Observation) -> bool:
    """Return whether the host already serves and has a pending switch, so that it waits for its
    batch.
    """
    return bool(unmanaged_containers(services, observed)) or any(
        restarts(changes(service, secrets, observed))
        and (container := observed.services.get(service.name, ServiceState()).container) is not None
        and container.running
        for service in services
    )


def unmanaged_containers(services: Sequence[Service], observed: Observation) -> tuple[str, ...]:
    """``name restart-policy`` of containers that make room for these services."""
    ports = {port for service in services for port in service.ports}
    names = {
        listener.container
        for port, listener in observed.ports.items()
        if port in ports and listener.container and not is_ours(listener, observed)
    }
    return tuple(sorted(names))


def is_ours(listener: Listener, observed: Observation) -> bool:
    """Return whether a listener is a proxy, or in a container of sparkwright's services, on any
    port.
    """
    name = (listener.container or "").partition(" ")[0]
    # For a container with its own network, a process of Docker listens in its place.
    service = name.removeprefix("sparkwright-")
    by_docker = listener.command in ("docker-proxy", "dockerd")
    if by_docker and service != name and service in observed.services:
        return True
    ids = [state.container.id for state in observed.services.values() if state.container]
    return any(item in listener.cgroup for item in (*ids, *OWN_UNITS))

"""Services as they must run on a host, and what of them is not so, by the host's observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkwright.config.secrets import Secret
from sparkwright.host.lib.exclusive import Group, member
from sparkwright.host.lib.ranks import RankConfig
from sparkwright.host.lib.systemd import RUNNING
from sparkwright.host.observation import Listener, Observation, ServiceAt, ServiceState
from sparkwright.host.proxy.pool import Pool
from sparkwright.host.release import ReleaseNote, SmokeRequest
from sparkwright.plan.missing import differs, digest
from sparkwright.text.marks import stopped
from sparkwright.text.timestamps import epoch

#: Units that are no service's.
OWN_UNITS = ("sparkwright-gateway.service", "sparkwright-health.service",
             "sparkwright-recover.service", "sparkwright-schedule.service",
             "sparkwright-wake.service", "sparkwright-watch.service")  # fmt: skip
#: What systemd says of a unit that does not run, and is not to.
RESTING = ("inactive", "failed")


@dataclass(frozen=True)
class DesiredService:
    """One service of a host: everything that starting it, proving it and going back need.

    Attributes:
        home: its directory on the host.
        release: id of the rendered state; another content has another id.
        compose: text of its compose file.
        unit_text: text of its systemd unit.
        image: name in the host's Docker.
        environment: text of the 0600 environment file beside its releases; holds the API key.
        gate: what it is asked before it counts as started.
        note: what the release is made of, kept with it.
        ports: that it listens on.
        soak_seconds: how long a switched service is looked on after its first answers.
        pool: its place behind the host's own proxy.
        second_boot: whether it is started once more after a start that compiled, on unified memory.
        exclusive: the group of which it is one, and members: its services, the default first.
        rank: its part of a cluster's service; None for a service of one host.
        ranks_key: text of the 0600 file by which a head knows its followers.
        on_request: whether a client's request activates it.
    """

    name: str
    home: str
    release: str
    compose: str
    unit_text: str
    image: str
    environment: Secret
    gate: SmokeRequest
    note: ReleaseNote
    ports: tuple[int, ...]
    soak_seconds: float = 0.0
    pool: Pool | None = None
    second_boot: bool = False
    exclusive: str | None = None
    members: tuple[str, ...] = ()
    on_request: bool = False

    def runs_instead(self, observed: Observation) -> str | None:
        """The member of its group that runs while it sleeps; None where it is to run itself."""
        if self.exclusive is None:
            return None
        runs = member(Group(self.members), observed.active.get(self.exclusive))
        return None if runs == self.name else runs

    rank: RankConfig | None = None
    ranks_key: Secret | None = None

    @property
    def follower(self) -> bool:
        """Whether it runs what the head of its cluster asks for, on another host."""
        return self.rank is not None and self.rank.number > 0

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"

    @property
    def unit_path(self) -> str:
        """Where the unit lies on the host."""
        return f"/etc/systemd/system/{self.unit}"

    @property
    def directory(self) -> str:
        """Where the release's files lie on the host."""
        return f"{self.home}/releases/{self.release}"

    @property
    def secrets(self) -> str:
        """The environment file, beside the releases because it outlives them."""
        return f"{self.home}/secrets.env"

    @property
    def place(self) -> ServiceAt:
        """What an observation is asked of it."""
        return ServiceAt(self.name, self.home, self.unit, self.release)


def changes(service: DesiredService, observed: Observation) -> list[str]:
    """What is not as desired, as words of a sentence."""
    state = observed.services.get(service.name, ServiceState())
    unit = observed.units.get(service.unit, {})
    if service.follower:
        return _of_a_follower(service, state, unit)
    found = []
    if state.compose != digest(service.compose) or state.current != service.release:
        after = f" after {state.current}" if state.current else ""
        found.append(f"release {service.release}{after}")
    if state.unit != digest(service.unit_text) or unit.get("NeedDaemonReload") == "yes":
        found.append("unit")
    secrets = state.secrets
    if differs(secrets, service.environment.value, 0o600) or (secrets and secrets.uid != 0):
        found.append("API key")
    rewritten = bool(found)
    if service.runs_instead(observed):
        return [*found, *_awake(state, unit)]
    if state.asleep and service.exclusive:
        found.append("awake")
    if unit.get("UnitFileState") != "enabled":
        found.append("start at boot")
    container = state.container
    if container is None or not container.running or unit.get("ActiveState") != "active":
        if state.stopped and state.stopped.holds(unit):
            found.append(stopped(state.stopped, observed.time))
        found.append("start")
    elif (
        rewritten
        # A run that was killed after it wrote and before it restarted.
        or container.release != service.release
        or state.newest > epoch(container.created)
    ):
        found.append("restart")
    return found


def _awake(state: ServiceState, unit: Mapping[str, str]) -> list[str]:
    """What of a service that sleeps is as if it ran."""
    found = [] if state.asleep else ["no start at boot"]
    return [*found, "stop"] if unit.get("ActiveState", "inactive") not in RESTING else found


def _of_a_follower(
    service: DesiredService, state: ServiceState, unit: Mapping[str, str]
) -> list[str]:
    """What is not there for the head to ask for. Which release runs is the head's affair, and
    whether its engine does: it waits for the other ranks."""
    found = []
    if state.compose != digest(service.compose):
        found.append(f"release {service.release} for its rank")
    runs = state.current == service.release
    if runs and (state.unit != digest(service.unit_text) or unit.get("NeedDaemonReload") == "yes"):
        found.append("unit")
    secrets = state.secrets
    if differs(secrets, service.environment.value, 0o600) or (secrets and secrets.uid != 0):
        found.append("ranks' key")
    if unit.get("UnitFileState") != "enabled":
        found.append("start at boot")
    if unit.get("ActiveState") not in RUNNING:
        found.append("start")
    return found


def restarts(found: Sequence[str]) -> bool:
    """Whether these changes stop or start the service."""
    return bool(found) and found[-1] in ("start", "restart", "stop")


def former(state: ServiceState, release: str) -> str | None:
    """The release to go back to when this one does not answer; None where there is none."""
    container = state.container
    runs = state.current if container and container.running else None
    return next((one for one in (state.good, runs) if one and one != release), None)


def active_of(services: Sequence[DesiredService], observed: Observation) -> dict[str, str]:
    """The member of each exclusive group that runs, by the host's observation."""
    return {
        one.exclusive: one.runs_instead(observed) or one.name
        for one in services
        if one.exclusive is not None
    }


def serves_already(services: Sequence[DesiredService], observed: Observation) -> bool:
    """Whether the host serves and is to be switched to something else: then its batch comes."""
    return bool(unmanaged_containers(services, observed)) or any(
        (found := changes(service, observed))
        and restarts(found)
        and (container := observed.services.get(service.name, ServiceState()).container) is not None
        and container.running
        for service in services
    )


def unmanaged_containers(
    services: Sequence[DesiredService], observed: Observation
) -> tuple[str, ...]:
    """``name restart-policy`` of containers that make room for these services."""
    ports = {port for service in services for port in service.ports}
    return tuple(
        sorted(
            {
                listener.container
                for port, listener in observed.ports.items()
                if port in ports and listener.container and not is_ours(listener, observed)
            }
        )
    )


def is_ours(listener: Listener, observed: Observation) -> bool:
    """A listener in a container of any of our services (ports may be exchanged), or a proxy."""
    # A container with a network of its own: Docker's own process listens in its place.
    name = (listener.container or "").partition(" ")[0]
    if (
        listener.command == "docker-proxy"
        and name.removeprefix("sparkwright-") in observed.services
    ):
        return name.startswith("sparkwright-")
    ids = [state.container.id for state in observed.services.values() if state.container]
    return any(one in listener.cgroup for one in (*ids, *OWN_UNITS))

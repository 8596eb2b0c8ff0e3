"""Report the status of a host: its services and their history. The program changes nothing and runs
as root."""

import time
from contextlib import suppress
from pathlib import Path

from sparkwright.host import lock, release
from sparkwright.host import service as records
from sparkwright.host.lib import docker, documents, exclusive, files, homes, http, ranks, systemd
from sparkwright.host.lib.annotations import T
from sparkwright.host.lib.records import dataclass, decode, field
from sparkwright.host.watch.state import WatchReport


@dataclass(frozen=True)
class StatusRequest:
    """Request for a host's status.

    Attributes:
        ports: service -> address and port to check its health; other services use the address in
            their release.
        texts: whether to report the files of running releases.
    """

    services_root: str = "/opt/sparkwright"
    ports: dict[str, tuple[str, int]] = field(default_factory=dict)
    texts: bool = False


@dataclass(frozen=True)
class KeptRelease:
    """A release on a host.

    Attributes:
        at: time when the release was written, in seconds since the epoch.
        service: the release's record; None if the record is damaged or of another version of
            sparkwright.
    """

    at: float
    service: records.Service | None = None


@dataclass(frozen=True)
class ServiceStatus:
    """Status of a service on a host.

    Attributes:
        current, good: the release that must run, and the last release that passed its smoke test.
        unit: systemd's properties.
        health: the service's health; None if its port is unknown.
        texts: name -> text of each file of the running release, if requested.
        stopped: the last stop by request; the service may have been started since.
    """

    current: str | None
    good: str | None
    releases: dict[str, KeptRelease]
    container: docker.Container | None
    unit: dict[str, str]
    health: http.Health | None
    texts: dict[str, str | None] = field(default_factory=dict)
    stopped: homes.Stopped | None = None


@dataclass(frozen=True)
class HostStatus:
    """A host's services, the run that holds its lock, and its history, oldest first.

    Attributes:
        now: the host's clock, seconds since the epoch.
        watch: the watch's report; None without a watch.
        maintenance: the maintenance mark; None if the host is not in maintenance.
        sleeping: sleeping exclusive service -> the running service of its group.
        actions: requested starts, stops and maintenance, oldest first.
    """

    now: float
    lock: lock.Owner | None
    switch: release.SwitchJournal | None
    history: tuple[release.HistoryEntry, ...]
    services: dict[str, ServiceStatus]
    watch: WatchReport | None = None
    maintenance: homes.Maintenance | None = None
    sleeping: dict[str, str] = field(default_factory=dict)
    actions: tuple[homes.Action, ...] = ()


def service(home: Path, request: StatusRequest) -> ServiceStatus:
    """Return the status of a service: links, releases, container, unit and health."""
    name, unit = home.name, homes.unit(home.name)
    releases = {
        path.name: KeptRelease(path.stat().st_mtime, records.kept(home, path.name))
        for path in sorted(home.glob("releases/*"))
        if path.is_dir()
    }
    current = files.target(home / "current")
    record = releases[current].service if current in releases else None
    at = request.ports.get(name) or (record and (record.gate.address, record.gate.port))
    texts = {"compose.yaml": home / "current/compose.yaml", unit: systemd.UNITS / unit}
    return ServiceStatus(
        current=current,
        good=files.target(home / "good"),
        releases=releases,
        container=docker.own_container(name),
        unit=ranks.unit(home, systemd.unit(unit)),
        health=ranks.health(home, http.Server(*at) if at else None),
        texts={key: documents.text(path) for key, path in texts.items()} if request.texts else {},
        stopped=homes.stopped(home),
    )


def entries(kind: type[T], file: Path) -> tuple[T, ...]:
    """Return the records of a file, oldest first; lines that fit no version are skipped."""
    result = []
    for line in documents.lines(file):
        with suppress(ValueError):
            result.append(decode(kind, line))
    return tuple(result)


def main(request: StatusRequest) -> HostStatus:
    """Return the host's status."""
    root = Path(request.services_root)
    state = root / "state"
    return HostStatus(
        now=time.time(),
        lock=documents.record(lock.Owner, state / "lock.json"),
        switch=documents.record(release.SwitchJournal, state / "switch/progress.json"),
        history=entries(release.HistoryEntry, state / "history.jsonl"),
        services={name: service(home, request) for name, home in homes.services(root).items()},
        watch=documents.record(WatchReport, state / "watch.json"),
        maintenance=homes.maintenance(),
        sleeping=exclusive.sleeping(state),
        actions=entries(homes.Action, state / "actions.jsonl"),
    )

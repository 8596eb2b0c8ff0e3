"""What a host runs and how it came to that. Changes nothing; runs as root."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sparkwright.host import service as records
from sparkwright.host.contracts.lock import Owner
from sparkwright.host.contracts.records import decode
from sparkwright.host.contracts.status import (
    Health,
    HostStatus,
    KeptRelease,
    RunningContainer,
    ServiceStatus,
    StatusRequest,
)
from sparkwright.host.contracts.switch import HistoryEntry, SwitchJournal
from sparkwright.host.contracts.watch import WatchReport
from sparkwright.host.lib import docker, documents, exclusive, files, homes, ranks, systemd
from sparkwright.host.lib.http import NoAnswer, Server


def releases(home: Path) -> dict[str, KeptRelease]:
    """Every release that is kept: what it is made of, and since when it is here."""
    found = {}
    for place in sorted(home.glob("releases/*")):
        if place.is_dir():
            found[place.name] = kept(home, place)
    return found


def kept(home: Path, place: Path) -> KeptRelease:
    """One release of a service; of a record that is damaged or of another version only its time."""
    return KeptRelease(place.stat().st_mtime, records.kept(home, place.name))


def health(server: Server) -> Health:
    """What /health says, and how fast."""
    began = time.monotonic()
    try:
        return Health(server.get("/health").status, time.monotonic() - began)
    except NoAnswer as error:
        return Health(None, said=str(error))


def container(name: str) -> RunningContainer | None:
    """A service's container."""
    seen = docker.container(f"sparkwright-{name}")
    return seen and RunningContainer(
        running=seen["State"]["Running"],
        started=seen["State"]["StartedAt"],
        release=docker.release_of(seen),
        image=seen["Config"]["Image"],
    )


def service(home: Path, request: StatusRequest) -> ServiceStatus:
    """One service: links, releases, container, unit and health."""
    name = home.name
    current, every = files.target(home / "current"), releases(home)
    record = every[current].service if current in every else None
    place = request.ports.get(name) or (record and (record.gate.address, record.gate.port))
    unit = f"sparkwright-{name}.service"
    places = {"compose.yaml": home / "current/compose.yaml", unit: systemd.UNITS / unit}
    return ServiceStatus(
        current=current,
        good=files.target(home / "good"),
        releases=every,
        container=container(name),
        unit=ranks.unit(home, systemd.unit(unit)),
        health=ranks.health(home) or (health(Server(*place)) if place else None),
        texts={key: documents.text(one) for key, one in places.items()} if request.texts else {},
        stopped=homes.stopped(home),
    )


def history(state: Path) -> tuple[HistoryEntry, ...]:
    """Every switch, oldest first; what is no entry of any version is passed over."""
    found = []
    for line in documents.lines(state / "history.jsonl"):
        with suppress(ValueError):
            found.append(decode(HistoryEntry, line))
    return tuple(found)


def main(request: StatusRequest) -> HostStatus:
    """Answer a request."""
    root = Path(request.services_root)
    state = root / "state"
    return HostStatus(
        now=time.time(),
        lock=documents.record(Owner, state / "lock.json"),
        switch=documents.record(SwitchJournal, state / "switch/progress.json"),
        history=history(state),
        services={name: service(home, request) for name, home in homes.services(root).items()},
        watch=documents.record(WatchReport, state / "watch.json"),
        maintenance=homes.maintenance(),
        sleeping=exclusive.sleeping(state),
    )

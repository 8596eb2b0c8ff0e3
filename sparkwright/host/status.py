"""What a host runs and how it came to that. Changes nothing; runs as root."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

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
from sparkwright.host.contracts.switch import HistoryEntry, SwitchJournal, entry_of
from sparkwright.host.contracts.watch import WatchReport
from sparkwright.host.lib import docker, documents, files, systemd
from sparkwright.host.lib.http import NoAnswer, Server


def releases(home: Path) -> dict[str, KeptRelease]:
    """Every release that is kept: what it is made of, and since when it is here."""
    found = {}
    for place in sorted(home.glob("releases/*")):
        if place.is_dir():
            note = documents.read(place / "release.json") or {}
            proxy = (note.get("gate") or {}).get("door") is not None
            kept = {**note, "at": place.stat().st_mtime, "proxy": proxy}
            found[place.name] = decode(KeptRelease, kept)
    return found


def health(server: Server) -> Health:
    """What /health says, and how fast."""
    began = time.monotonic()
    try:
        return Health(server.get("/health").status, time.monotonic() - began)
    except NoAnswer as error:
        return Health(None, said=str(error))


def listening(release: Path) -> tuple[str, int] | None:
    """Where a release's service is asked on its own host, as the release itself says."""
    gate = (documents.read(release / "release.json") or {}).get("gate")
    if not isinstance(gate, dict):
        return None
    address, port = gate.get("address"), gate.get("port")
    if isinstance(address, str) and isinstance(port, int) and 0 < port < 65536:
        return address, port
    return None


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
    place = request.ports.get(name) or listening(home / "current")
    unit = f"sparkwright-{name}.service"
    places = {"compose.yaml": home / "current/compose.yaml", unit: systemd.UNITS / unit}
    return ServiceStatus(
        current=files.target(home / "current"),
        good=files.target(home / "good"),
        releases=releases(home),
        container=container(name),
        unit=systemd.unit(unit),
        health=health(Server(*place)) if place else None,
        texts={key: documents.text(one) for key, one in places.items()} if request.texts else {},
    )


def history(state: Path) -> tuple[HistoryEntry, ...]:
    """Every switch, oldest first; what is no entry of any version is passed over."""
    found = []
    for line in documents.lines(state / "history.jsonl"):
        with suppress(ValueError):
            found.append(entry_of(line))
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
        services={
            home.name: service(home, request)
            for home in sorted(root.glob("services/*"))
            if (home / "current").is_symlink()
        },
        watch=documents.record(WatchReport, state / "watch.json"),
    )

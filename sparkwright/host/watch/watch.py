"""Looks once at this host, adds the sample to the day's, and writes down what is wrong.

Run by ``sparkwright-watch.timer`` every minute, as root, with the path of its configuration.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from sparkwright.host.lib import disks, docker, documents, files, gpu, metrics, ranks, systemd
from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.lib.records import encode
from sparkwright.host.watch import evaluation, thresholds
from sparkwright.host.watch.state import (
    Expected,
    ExpectedService,
    Sample,
    ServiceSample,
    WatchConfig,
    WatchedService,
    WatchFinding,
    WatchState,
)


def sample(config: WatchConfig, now: float) -> Sample:
    """One look."""
    journal = documents.read(config.switch) or {}
    expected = (documents.record(Expected, config.expected) or Expected()).services
    return Sample(
        at=round(now),
        switching=journal.get("step", "ended") != "ended",
        gpu=evaluation.gpu_state(gpu.ask(), thresholds.THRESHOLDS),
        disks={one.path: (one.free, one.total) for one in disks.file_systems(config.paths)},
        services={
            one.name: service(one, expected.get(one.name), config.metric_names)
            for one in config.services
        },
    )


def service(
    one: WatchedService, expected: ExpectedService | None, names: Mapping[str, str]
) -> ServiceSample:
    """A service's unit, health, counters and drift."""
    shown = ranks.unit(one.home, systemd.unit(one.unit, timeout=10))
    server = Server(one.address, one.port)
    rank = ranks.health(one.home)
    try:
        health = rank.code if rank else server.get("/health").status
    except NoAnswer:
        health = None
    totals = metrics.ask(server, names) if health == 200 and rank is None else None
    known = totals or {}
    drafted = known.get(metrics.DRAFTED)
    return ServiceSample(
        health=health,
        active=shown.get("ActiveState"),
        restarts=int(shown.get("NRestarts") or 0),
        running=None if totals is None else known.get(metrics.RUNNING, 0.0),
        waiting=None if totals is None else known.get(metrics.WAITING, 0.0),
        cache=None if totals is None else round(known.get(metrics.CACHE, 0.0), 3),
        progress=None if totals is None else metrics.progress(known),
        drafted=drafted,
        accepted=None if drafted is None else known.get(metrics.ACCEPTED, 0.0),
        drift=tuple(drift(one, expected)),
    )


def drift(one: WatchedService, expected: ExpectedService | None) -> list[str]:
    """What of a service is not as the last deploy left it."""
    if expected is None:
        return []
    found = []
    current = Path(one.home, "current")
    link = files.target(current) or "nothing"
    if link != expected.release:
        found.append(f"release {link} instead of {expected.release}")
    elif documents.digest(current / "compose.yaml") != expected.compose:
        found.append("compose.yaml was changed by hand")
    unit = documents.digest(systemd.UNITS / one.unit)
    if unit != expected.unit and link == expected.release:
        found.append(f"{one.unit} was changed by hand")
    runs = docker.running_release(one.name)
    if runs and runs != link:
        found.append(f"the container is of release {runs}")
    return found


def look(config: WatchConfig, now: float) -> list[str]:
    """Look, judge and write it down. Returns what began and what is over, as lines."""
    before = documents.record(WatchState, config.state) or WatchState(0)
    ring = evaluation.kept([*before.ring, sample(config, now)])
    found = evaluation.judge(ring, config.services, thresholds.THRESHOLDS)
    found = evaluation.carried(found, before.findings, round(now))
    document_ = document(WatchState(round(now), tuple(found), tuple(ring)))
    state = json.dumps(document_, separators=(",", ":"))
    files.write(Path(config.state), state, 0o600, durable=False)
    files.write(Path(config.metrics), exported(found, round(now)), 0o644, durable=False)
    return [
        *(_line(one) for one in found if _key(one) not in map(_key, before.findings)),
        *(f"over: {_line(one)}" for one in before.findings if _key(one) not in map(_key, found)),
    ]


def document(state: WatchState) -> object:
    """The content of watch.json: what a service did not report is absent, as earlier
    versions expect."""
    found = encode(state)
    for one in found["ring"]:
        for name, service in one["services"].items():
            said = {key: value for key, value in service.items() if value is not None}
            one["services"][name] = {"health": None, "active": None, **said}
    return found


def exported(found: Iterable[WatchFinding], now: int) -> str:
    """The findings as node_exporter's textfile collector reads them."""
    lines = [
        "# HELP sparkwright_watch_seconds When the watch looked last, since the epoch.",
        "# TYPE sparkwright_watch_seconds gauge",
        f"sparkwright_watch_seconds {now}",
        "# HELP sparkwright_finding What the watch holds to be wrong.",
        "# TYPE sparkwright_finding gauge",
    ]
    for one in found:
        labels = f'diagnosis="{one.name}",service="{one.service or ""}",severity="{one.severity}"'
        lines.append(f"sparkwright_finding{{{labels}}} 1")
    return "\n".join([*lines, ""])


def _key(one: WatchFinding) -> tuple[str, str | None]:
    return one.name, one.service


def _line(one: WatchFinding) -> str:
    where = f"{one.service}: " if one.service else ""
    return f"{where}{one.severity}: {one.name}: {one.seen}"


def run(path: str) -> int:
    """One look by the clock; what changed goes to the journal."""
    config = documents.record(WatchConfig, path)
    if config is None:
        raise SystemExit(f"{path} can't be read")
    for line in look(config, time.time()):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1]))

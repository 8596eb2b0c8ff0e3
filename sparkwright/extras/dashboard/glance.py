"""Report all data of this host for the live page in one answer, without a change on the host."""

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from sparkwright.host import load, status
from sparkwright.host.lib import documents, metrics, records, systemd
from sparkwright.host.lib.annotations import Any
from sparkwright.host.models import report

#: Number of a switch's last lines in an answer.
_ENDS = 5
#: Seconds after which a fetch that did not end is forgotten.
_OLD = 86400
#: Least and largest seconds between samples of a rate; seconds for which the watch's last sample is
#: new.
_LEAST, _HOUR, _FRESH = 120.0, 3600.0, 180.0


@records.dataclass(frozen=True)
class GlanceRequest:
    """Request for a host's load, status and usage by key."""

    load: load.LoadRequest
    status: status.StatusRequest
    usage: report.UsageRequest


@records.dataclass(frozen=True)
class UnfinishedFetch:
    """A running, failed or interrupted download: its progress.json (``host/fetch/progress.py``).

    Attributes:
        name: name of the repository or the image.
        runs: whether the job of the download runs; otherwise the download failed or was
            interrupted.
    """

    bytes_total: int
    state: str = ""
    bytes_done: int = 0
    rate: int = 0
    message: str = ""
    name: str = ""
    runs: bool = False


@records.dataclass(frozen=True)
class Glance:
    """Present state of a host.

    Attributes:
        status: only the current releases, and the end of the history.
        hour: service -> tokens a second over the last hour, if the watch counts tokens.
        usage: usage of the address for all models, by key and model; empty on hosts without an
            address.
    """

    load: load.HostLoad
    status: status.HostStatus
    fetches: tuple[UnfinishedFetch, ...] = ()
    hour: dict[str, float] = records.field(default_factory=dict)
    disks: dict[str, tuple[int, int]] = records.field(default_factory=dict)
    usage: tuple[report.UsageRow, ...] = ()


def unfinished(state: Path) -> Iterator[UnfinishedFetch]:
    """Yield the last day's downloads that are running or did not complete."""
    for file in sorted(state.glob("sparkwright-*/progress.json")):
        progress = documents.record(UnfinishedFetch, file)
        if not progress or progress.state == "done" or file.stat().st_mtime < time.time() - _OLD:
            continue
        unit = systemd.unit(f"{file.parent.name}.service", timeout=10)
        request = documents.read(file.with_name("request.json")) or {}
        fetch = request.get("fetch", request)
        name = fetch.get("repo") if isinstance(fetch, dict) else None
        runs = unit.get("ActiveState") in systemd.RUNNING
        yield records.replace(progress, name=str(name or file.parent.name), runs=runs)


def recent(file: Path) -> list[Mapping[str, Any]]:
    """Samples of the last hour in the watch's file; empty if the watch has stopped."""
    watch: Any = documents.read(file) or {}
    now = time.time()
    ring = [sample for sample in watch.get("ring") or [] if 0 <= now - sample["at"] <= _HOUR]
    return ring if ring and now - ring[-1]["at"] <= _FRESH else []


def rates(ring: list[Mapping[str, Any]]) -> dict[str, float]:
    """Tokens a second of each service over samples of the watch, oldest first.

    A counter that fell was reset by a restart of its engine.
    """
    counts: dict[str, list[tuple[float, float]]] = {}
    for sample in ring:
        for name, service in sample.get("services", {}).items():
            if (count := service.get("metrics", {}).get(metrics.GENERATED)) is not None:
                counts.setdefault(name, []).append((sample["at"], count))
    result = {}
    for name, points in counts.items():
        seconds = ring[-1]["at"] - points[0][0]
        rises = pairwise(points)
        tokens = sum(now - before if now >= before else now for (_, before), (_, now) in rises)
        if seconds >= _LEAST:
            result[name] = tokens / seconds
    return result


def counted(request: report.UsageRequest) -> tuple[report.UsageRow, ...]:
    """Return the usage by key; if the database can't be read, the result is empty, and `sparkwright
    usage` reports the reason.
    """
    try:
        return report.main(request)
    except SystemExit:
        return ()


def main(request: GlanceRequest) -> Glance:
    """Answer a request."""
    state = Path(request.status.services_root, "state")
    seen = status.main(request.status)
    services = {}
    for name, service in seen.services.items():
        current = {key: kept for key, kept in service.releases.items() if key == service.current}
        services[name] = records.replace(service, releases=current)
    ring = recent(state / "watch.json")
    return Glance(
        load=load.main(request.load),
        status=records.replace(seen, services=services, history=seen.history[-_ENDS:], actions=()),
        fetches=tuple(unfinished(state)),
        hour=rates(ring),
        disks=ring[-1].get("disks", {}) if ring else {},
        usage=counted(request.usage),
    )

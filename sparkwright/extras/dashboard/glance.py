"""Reports all that the live page shows of this host, in one answer. Changes nothing."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host import load, status
from sparkwright.host.fetch.unfinished import UnfinishedFetch, unfinished
from sparkwright.host.lib.records import dataclass, field, replace
from sparkwright.host.load import HostLoad, LoadRequest
from sparkwright.host.models import report
from sparkwright.host.models.report import UsageRequest, UsageRow
from sparkwright.host.status import HostStatus, StatusRequest
from sparkwright.host.watch.rates import rates, recent

#: Ends of switches that an answer has.
_ENDS = 5


@dataclass(frozen=True)
class GlanceRequest:
    """Request for a host's load, status and use by key."""

    load: LoadRequest
    status: StatusRequest
    usage: UsageRequest


@dataclass(frozen=True)
class Glance:
    """A host now.

    Attributes:
        status: of releases only the current ones, and of the history the end.
        hour: service -> tokens a second over the last hour, where the watch counts them.
        disks: path -> free and total bytes, at the watch's last look.
        usage: of the address for all models, by key and model; empty on hosts without one.
    """

    load: HostLoad
    status: HostStatus
    fetches: tuple[UnfinishedFetch, ...] = ()
    hour: dict[str, float] = field(default_factory=dict)
    disks: dict[str, tuple[int, int]] = field(default_factory=dict)
    usage: tuple[UsageRow, ...] = ()


def counted(request: UsageRequest) -> tuple[UsageRow, ...]:
    """Use by key; empty if the database can't be read, for which `sparkwright usage` has the
    reason."""
    try:
        return report.main(request)
    except SystemExit:
        return ()


def main(request: GlanceRequest) -> Glance:
    """Answer a request."""
    state = Path(request.status.services_root, "state")
    seen = status.main(request.status)
    services = {
        name: replace(service, releases={service.current: service.releases[service.current]})
        if service.current in service.releases
        else replace(service, releases={})
        for name, service in seen.services.items()
    }
    ring = recent(state / "watch.json")
    return Glance(
        load=load.main(request.load),
        status=replace(seen, services=services, history=seen.history[-_ENDS:], actions=()),
        fetches=tuple(unfinished(state)),
        hour=rates(ring),
        disks=ring[-1].get("disks", {}) if ring else {},
        usage=counted(request.usage),
    )

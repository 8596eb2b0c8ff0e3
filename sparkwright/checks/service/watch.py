"""Faults that the watch finds: by the doctor's two looks, and by the watch's own report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.service.facts import Facts, Planned
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity
from sparkwright.host.doctor import Look, ServiceSeen
from sparkwright.host.lib.metrics import (
    ACCEPTED,
    CACHE,
    DRAFTED,
    GENERATED,
    PROGRESS,
    RUNNING,
    WAITING,
)
from sparkwright.host.watch import evaluation, thresholds
from sparkwright.host.watch.state import (
    Sample,
    ServiceSample,
    WatchFinding,
    WatchReport,
)
from sparkwright.text.lock_owner import age

#: Seconds after the start within which a first request is compiling, not hanging.
_FIRST = 180.0
#: Of a service that is not planned it is not known how long it boots.
_FOREVER = 1e9


@check(
    "given-up", "not-serving", "restarts", "wedge", "kv-cache-full", "acceptance-collapse",
    "disk-full", "gpu-silent", "gpu-heat", "gpu-power-brake", "gb10-low-power",
)  # fmt: skip
def _evaluated(facts: Facts) -> Iterator[Symptom]:
    """Faults that the watch would report, as far as one or two samples show them."""
    limits = thresholds.THRESHOLDS
    disks = {path: (disk.free, disk.total) for path, disk in facts.disks.items() if disk.total}
    found = evaluation.judge([Sample(facts.now, disks=disks)], {}, limits)
    for name, service, planned in facts.each():
        boot = planned.boot_seconds if planned else _FOREVER
        ring = [
            Sample(at, services={name: sample}) for at, sample in _samples(facts, service, planned)
        ]
        found += evaluation.judge(ring, {name: boot}, limits.at_once())
    for one in found:
        symptom = _symptom(one)
        if one.name == "acceptance-collapse" and one.service:
            symptom = _collapse(symptom, facts.services[one.service], facts.planned)
        yield symptom
    state = evaluation.gpu_state(facts.gpu, limits)
    for key, name in evaluation.GPU_FINDINGS:
        words = getattr(state, key)
        if words and not (key == "silent" and "version mismatch" in facts.gpu.said):
            said = f"nvidia-smi: {words}" if key == "silent" else words
            yield Symptom(said, severity=Severity.ERROR, check=name)


def reported(watch: WatchReport | None, now: float) -> Iterator[Symptom]:
    """Faults that the watch on the host saw over hours; and whether it still looks."""
    if watch is None:
        return
    if now - watch.at > thresholds.THRESHOLDS.watch_silent_seconds:
        observed = f"the watch has not looked for {age(now - watch.at)}"
        yield Symptom(observed, check="watch-asleep")
        return
    for finding in watch.findings:
        symptom = _symptom(finding)
        since = age(now - finding.since)
        yield replace(symptom, observed=f"{symptom.observed} (watched for {since})")


def _symptom(finding: WatchFinding) -> Symptom:
    """The symptom of a finding of the watch, which may be of another version."""
    severity = {str(level): level for level in Severity}.get(finding.severity, Severity.WARNING)
    return Symptom(finding.seen, service=finding.service, severity=severity, check=finding.name)


def still(service: ServiceSeen) -> bool:
    """Whether requests ran at both looks and nothing came out in between."""
    return (
        service.healthy
        and len(service.metrics) > 1
        and all(look[RUNNING] > 0 for look in service.metrics)
        and all(service.between(name) == 0 for name in PROGRESS)
    )


def compiling(facts: Facts, service: ServiceSeen, planned: Planned | None) -> bool:
    """Whether it is young and has not generated anything: the first request takes its time."""
    boot = planned.boot_seconds if planned else 0
    nothing = service.metrics[-1][GENERATED] == 0
    return nothing and facts.uptime(service) < _FIRST + boot


def drafting(service: ServiceSeen) -> tuple[Look, ...]:
    """Looks to judge acceptance by: the two where they say enough, else the server's whole life."""
    lately = service.between(DRAFTED)
    if lately is not None and lately >= thresholds.THRESHOLDS.drafted:
        return service.metrics
    # Every counter begins at zero.
    return (Look(at=0, values={}), *service.metrics) if service.metrics else ()


def _samples(
    facts: Facts, service: ServiceSeen, planned: Planned | None
) -> Iterator[tuple[float, ServiceSample]]:
    """A service's looks as samples of the watch, oldest first."""
    plain = ServiceSample(service.health.code, service.unit.get("ActiveState"), service.restarts)
    uptime = facts.uptime(service)
    if uptime and plain.health is None and not service.metrics:
        yield facts.now - uptime, plain
    for look in drafting(service):
        young = compiling(facts, service, planned)
        sample = replace(
            plain,
            running=look[RUNNING],
            waiting=look[WAITING],
            cache=look[CACHE],
            drafted=look[DRAFTED],
            accepted=look[ACCEPTED],
            progress=None if young else sum(look[name] for name in PROGRESS),
        )
        # At its start it served, as far as is known.
        served = replace(sample, health=200)
        yield (look.at, sample) if look.values else (facts.now - uptime, served)
    if not service.metrics:
        yield facts.now, plain


def _collapse(symptom: Symptom, service: ServiceSeen, planned: dict[str, Planned]) -> Symptom:
    """The defect of older tags, or a drafter that does not fit."""
    own = planned.get(symptom.service or "")
    cached = service.container and "enable_prefix_caching" in service.container.arguments
    if own and own.corrupts and cached:
        return symptom
    return replace(
        symptom,
        reason="the drafter does not fit body or context: another model's, a sliding window "
        "that the tag ignores beyond 2048 tokens, or a cache that an old tag corrupted",
        remedy="restart the service and look again; then tag 2026-06-11-pr41703 or later, "
        "and sparkwright verify INVENTORY for body and drafter",
    )

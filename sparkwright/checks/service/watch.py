"""Faults that the watch finds: from the doctor's two samples, and from the watch's report."""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.checks.service.facts import Facts, Serving, services
from sparkwright.findings import thresholds
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity
from sparkwright.host.doctor import Look
from sparkwright.host.lib import metrics
from sparkwright.host.watch import evaluation, state
from sparkwright.text.lock_owner import age

#: Seconds after the start in which a first request counts as compiling instead of hanging.
_FIRST = 180.0
#: The boot time of an unplanned service is unknown.
_FOREVER = 1e9


@check(
    "given-up", "not-serving", "restarts", "wedge", "kv-cache-full", "acceptance-collapse",
    "disk-full", "gpu-silent", "gpu-heat", "gpu-power-brake", "gb10-low-power",
)  # fmt: skip
def _evaluated(facts: Facts) -> Iterator[Symptom]:
    """Return the faults that the watch would report, as far as one or two samples show them."""
    limits = thresholds.limits()
    # Two samples some seconds apart: a condition in both samples counts as lasting.
    at_once = {**limits, "stuck_seconds": 1, "cache_seconds": 1}
    disks = {path: (disk.free, disk.total) for path, disk in facts.disks.items() if disk.total}
    result = evaluation.judge([state.Sample(facts.now, disks=disks)], {}, limits)
    every = {subject.service or "": service for subject, service in services(facts)}
    for name, service in every.items():
        boot = service.planned.boot_seconds if service.planned else _FOREVER
        ring = [state.Sample(at, services={name: sample}) for at, sample in _samples(service)]
        result += evaluation.judge(ring, {name: boot}, at_once)
    for finding in result:
        own = every.get(finding.service or "")
        # The reason is the defect of older tags, or a drafter that does not fit.
        defect = own and own.planned and own.planned.corrupts and own.limits.caching
        misfit = own and finding.name == "acceptance-collapse" and not defect
        yield _symptom(finding, finding.seen, "misfit" if misfit else "")
    for name, fault in evaluation.gpu_state(facts.gpu, limits).items():
        silent = name == evaluation.SILENT
        if not (silent and "version mismatch" in facts.gpu.message):
            observed = f"nvidia-smi: {fault}" if silent else fault
            yield Symptom(name, severity=Severity.ERROR, observed=observed)


def reported(watch: state.WatchReport | None, now: float) -> Iterator[Symptom]:
    """Faults that the watch on the host observed over hours; and the fault of a watch that no
    longer runs.
    """
    if watch is None:
        return
    if now - watch.at > thresholds.limits()["watch_silent_seconds"]:
        observed = f"the watch has not run for {age(now - watch.at)}"
        yield Symptom("watch-asleep", observed=observed)
        return
    for finding in watch.findings:
        since = age(now - finding.since)
        yield _symptom(finding, f"{finding.seen} (watched for {since})")


def _symptom(finding: state.WatchFinding, observed: str, case: str = "") -> Symptom:
    """Return the symptom of a watch's finding; the watch may have another version."""
    severity = {str(level): level for level in Severity}.get(finding.severity, Severity.WARNING)
    return Symptom(
        finding.name, case, service=finding.service, severity=severity, observed=observed
    )


def still(service: Serving) -> bool:
    """Return whether requests ran in both samples without a token in between."""
    return (
        service.healthy
        and len(service.seen.metrics) > 1
        and all(look[metrics.RUNNING] > 0 for look in service.seen.metrics)
        and all(service.between(name) == 0 for name in metrics.PROGRESS)
    )


def compiling(service: Serving) -> bool:
    """Return whether the container started recently and has generated nothing: a first request is
    slow.
    """
    boot = service.planned.boot_seconds if service.planned else 0
    return service.seen.metrics[-1][metrics.GENERATED] == 0 and service.uptime < _FIRST + boot


def drafting(service: Serving) -> tuple[Look, ...]:
    """Return the samples for the acceptance rate: the two samples if they have enough drafts,
    otherwise the server's whole uptime.
    """
    lately = service.between(metrics.DRAFTED)
    if lately is not None and lately >= thresholds.limits()["drafted"]:
        return service.seen.metrics
    # Every counter begins at zero.
    return (Look(at=0, values={}), *service.seen.metrics) if service.seen.metrics else ()


def _samples(service: Serving) -> Iterator[tuple[float, state.ServiceSample]]:
    """A service's metrics as samples of the watch, oldest first."""
    seen, now = service.seen, service.facts.now
    plain = state.ServiceSample(seen.health.code, seen.unit.get("ActiveState"), service.restarts)
    uptime = service.uptime
    if uptime and plain.health is None and not seen.metrics:
        yield now - uptime, plain
    for look in drafting(service):
        kept = {name: look[name] for name in metrics.WATCHED}
        if not compiling(service):
            kept[metrics.PROGRESSED] = metrics.progress(look.values)
        sample = replace(plain, metrics=kept)
        # Assume that the service served at its start.
        served = replace(sample, health=200)
        yield (look.at, sample) if look.values else (now - uptime, served)
    if not seen.metrics:
        yield now, plain

"""The doctor's looks, judged by the watch's own evaluation: one judgement for both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparkwright.doctor import thresholds
from sparkwright.doctor.check import Symptom
from sparkwright.doctor.facts import Facts, Look, Planned, ServiceSeen
from sparkwright.doctor.watch import WatchSeen
from sparkwright.findings.finding import Severity
from sparkwright.host.watch import evaluation
from sparkwright.text.lock_owner import age

DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
PROGRESS = ("generation_tokens_total", "prompt_tokens_total", "iteration_tokens_total_count")
#: Seconds after the start within which a first request is compiling, not hanging.
_FIRST = 180.0
#: Of a service that is not planned it is not known how long it boots.
_FOREVER = 1e9


def evaluated(facts: Facts) -> Iterator[tuple[str, Symptom]]:
    """What the watch would say, by check: of what one look or two can tell."""
    limits = thresholds.THRESHOLDS
    disks = {disk.path: [disk.free, disk.total] for disk in facts.disks if disk.total}
    host = {"at": facts.now, "gpu": {}, "disks": disks, "services": {}}
    found = evaluation.judge([host], [], limits.plain())
    for name, service, planned in facts.each():
        known = {"name": name, "boot_seconds": planned.boot_seconds if planned else _FOREVER}
        ring = [
            {"at": at, "gpu": {}, "disks": {}, "services": {name: sample}}
            for at, sample in _samples(facts, service, planned)
        ]
        found += evaluation.judge(ring, [known], limits.at_once().plain())
    for one in found:
        symptom = Symptom(one["seen"], one["service"], severity=Severity(one["severity"]))
        if one["name"] == "acceptance-collapse":
            symptom = _collapse(symptom, facts.services[one["service"]], facts.planned)
        yield one["name"], symptom
    state = evaluation.gpu_state(
        facts.gpu.model_dump(), limits.plain(), thresholds.HEAT, thresholds.BRAKE
    )
    for key, name in evaluation.GPU_FINDINGS:
        if state[key] and not (key == "silent" and "version mismatch" in facts.gpu.err):
            said = f"nvidia-smi: {state[key]}" if key == "silent" else state[key]
            yield name, Symptom(said, severity=Severity.ERROR)


def watched(watch: WatchSeen | None, now: float) -> Iterator[tuple[str, Symptom]]:
    """What the watch on the host saw over hours, by check; and whether it still looks."""
    if watch is None:
        return
    if now - watch.at > thresholds.THRESHOLDS.watch_silent_seconds:
        yield "watch-asleep", Symptom(f"the watch has not looked for {age(now - watch.at)}")
        return
    for one in watch.findings:
        observed = f"{one.seen} (watched for {age(now - one.since)})"
        yield one.name, Symptom(observed, one.service, severity=Severity(one.severity))


def still(service: ServiceSeen) -> bool:
    """Whether requests ran at both looks and nothing came out in between."""
    return (
        service.healthy
        and len(service.metrics) > 1
        and all(look["num_requests_running"] > 0 for look in service.metrics)
        and all(service.between(name) == 0 for name in PROGRESS)
    )


def compiling(facts: Facts, service: ServiceSeen, planned: Planned | None) -> bool:
    """Whether it is young and has not generated anything: the first request takes its time."""
    boot = planned.boot_seconds if planned else 0
    nothing = service.metrics[-1]["generation_tokens_total"] == 0
    return nothing and facts.uptime(service) < _FIRST + boot


def drafting(service: ServiceSeen) -> tuple[Look, ...]:
    """Looks to judge acceptance by: the two where they say enough, else the server's whole life."""
    lately = service.between(DRAFTED)
    if lately is not None and lately >= thresholds.THRESHOLDS.drafted:
        return tuple(service.metrics)
    # Every counter begins at zero.
    return (Look(at=0, values={}), *service.metrics) if service.metrics else ()


def _samples(
    facts: Facts, service: ServiceSeen, planned: Planned | None
) -> Iterator[tuple[float, dict[str, Any]]]:
    """A service's looks as samples of the watch, oldest first."""
    health = service.health.get("code")
    common = {"active": service.unit.get("ActiveState"), "restarts": service.restarts}
    uptime = facts.uptime(service)
    if uptime and health is None and not service.metrics:
        yield facts.now - uptime, {**common, "health": None}
    for look in drafting(service):
        sample: dict[str, Any] = {
            **common, "health": health, "running": look["num_requests_running"],
            "waiting": look["num_requests_waiting"], "cache": look["kv_cache_usage_perc"],
            "drafted": look[DRAFTED], "accepted": look[ACCEPTED],
        }  # fmt: skip
        if not compiling(facts, service, planned):
            sample["progress"] = sum(look[name] for name in PROGRESS)
        # At its start it served, as far as is known.
        yield (look.at, sample) if look.values else (facts.now - uptime, {**sample, "health": 200})
    if not service.metrics:
        yield facts.now, {**common, "health": health}


def _collapse(symptom: Symptom, service: ServiceSeen, planned: dict[str, Planned]) -> Symptom:
    """The defect of older tags, or a drafter that does not fit."""
    own = planned.get(symptom.service or "")
    cached = service.container and "enable_prefix_caching" in service.container.arguments
    if own and own.corrupts and cached:
        return symptom
    return Symptom(
        symptom.observed,
        symptom.service,
        reason="the drafter does not fit body or context: another model's, a sliding window "
        "that the tag ignores beyond 2048 tokens, or a cache that an old tag corrupted",
        remedy="restart the service and look again; then tag 2026-06-11-pr41703 or later, "
        "and sparkwright verify INVENTORY for body and drafter",
    )

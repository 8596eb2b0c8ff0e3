"""The engine's own counters: two looks at /metrics, and the whole life of the server."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts
from sparkwright.checks.service.watch import compiling, drafting, still
from sparkwright.findings.check import Symptom, check
from sparkwright.host.doctor import ServiceSeen
from sparkwright.host.lib import metrics
from sparkwright.host.watch import thresholds


@check("first-request")
def _first(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        if still(service) and compiling(facts, service, planned):
            yield Symptom(
                f"the first request runs, {facts.uptime(service):.0f} s after start", service=name
            )


@check("acceptance-low")
def _low(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        if not (looks := drafting(service)):
            continue
        drafted, accepted = (
            looks[-1][one] - looks[0][one] for one in (metrics.DRAFTED, metrics.ACCEPTED)
        )
        if drafted >= limits.drafted and limits.collapsed <= accepted / drafted < limits.low:
            observed = f"{accepted / drafted:.1%} of {drafted:.0f} drafted tokens accepted"
            yield Symptom(observed, service=name)


@check("no-drafts")
def _no_drafts(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        if not planned or not planned.speculates or not service.metrics:
            continue
        last = service.metrics[-1]
        if last[metrics.GENERATED] > 100 and last[metrics.DRAFTED] == 0:
            yield Symptom(
                f"{last[metrics.GENERATED]:.0f} tokens generated, none drafted",
                service=name,
            )


@check("preemptions")
def _preempted(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        risen = service.between(metrics.PREEMPTED)
        if risen:
            yield Symptom(f"{risen:.0f} requests preempted between two looks", service=name)


@check("queue-saturated")
def _queue(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if len(service.metrics) < 2 or still(service):
            continue
        last = service.metrics[-1]
        slots = service.container.number("max_num_seqs") if service.container else None
        mean = _first_token(service)
        waiting = all(look[metrics.WAITING] > 0 for look in service.metrics)
        full = slots is not None and last[metrics.RUNNING] >= slots
        slow = mean is not None and mean > thresholds.THRESHOLDS.queue_seconds
        if waiting and (full or slow):
            words = [f"{last[metrics.RUNNING]:.0f} requests run"]
            words += [f"{last[metrics.WAITING]:.0f} wait"]
            words += [f"{mean:.1f} s to the first token"] if mean else []
            yield Symptom(", ".join(words), service=name)


def _first_token(service: ServiceSeen) -> float | None:
    """Mean seconds to the first token between the two looks."""
    count = service.between(metrics.FIRST_TOKEN_COUNT)
    total = service.between(metrics.FIRST_TOKEN_SUM)
    return total / count if count and total is not None else None


def _ended(service: ServiceSeen) -> tuple[float, dict[str, float]]:
    if not service.metrics:
        return 0.0, {}
    prefix = f"{metrics.ENDED}:"
    reasons = {
        name.removeprefix(prefix): value
        for name, value in service.metrics[-1].values.items()
        if name.startswith(prefix)
    }
    return sum(reasons.values()), reasons


@check("answers-cut")
def _cut(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        cut = reasons.get("length", 0.0)
        if total >= limits.ended and cut > limits.cut * total:
            yield Symptom(
                f"{cut:.0f} of {total:.0f} answers ended with finish_reason length", service=name
            )


@check("clients-give-up")
def _aborted(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        gone = reasons.get("abort", 0.0)
        if total >= limits.ended and gone > limits.abandoned * total:
            yield Symptom(
                f"{gone:.0f} of {total:.0f} requests were given up by their clients", service=name
            )


@check("booting")
def _booting(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        seconds = facts.uptime(service)
        starting = service.active and seconds and service.health.code is None
        if planned and starting and seconds <= planned.boot_seconds:
            yield Symptom(f"no /health yet, {seconds / 60:.0f} min after start", service=name)

"""What vLLM's own counters tell: two looks at /metrics, and the whole life of the server."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.doctor.check import Check, Sight
from sparkwright.doctor.facts import Facts, Planned, ServiceSeen
from sparkwright.doctor.thresholds import LIMITS
from sparkwright.findings.finding import Severity

_DRAFTED = "spec_decode_num_draft_tokens_total"
_ACCEPTED = "spec_decode_num_accepted_tokens_total"
_PROGRESS = ("generation_tokens_total", "prompt_tokens_total", "iteration_tokens_total_count")
_WAITING = "num_requests_waiting"
#: Seconds after the start within which a first request is compiling, not hanging.
_FIRST = 180.0


def _still(service: ServiceSeen) -> bool:
    """Whether requests ran at both looks and nothing came out in between."""
    return (
        service.healthy
        and len(service.metrics) > 1
        and all(look["num_requests_running"] > 0 for look in service.metrics)
        and all(service.between(name) == 0 for name in _PROGRESS)
    )


def _wedge(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        if _still(service) and not _compiling(facts, service):
            last = service.metrics[-1]
            yield Sight(
                f"/health answers 200, {last['num_requests_running']:.0f} requests run, and no "
                f"token came out within {last.at - service.metrics[0].at:.0f} s",
                name,
            )


def _first(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        if _still(service) and _compiling(facts, service):
            yield Sight(f"the first request runs, {facts.uptime(service):.0f} s after start", name)


def _compiling(facts: Facts, service: ServiceSeen) -> bool:
    nothing = service.metrics[-1]["generation_tokens_total"] == 0
    return nothing and facts.uptime(service) < _FIRST + _boot(facts, service)


def _boot(facts: Facts, service: ServiceSeen) -> float:
    for _, one, planned in facts.each():
        if one is service and planned:
            return float(planned.boot_seconds)
    return 0.0


def _share(service: ServiceSeen) -> tuple[float, float] | None:
    """Accepted share and drafted tokens: of the two looks where they say enough, else of all."""
    if not service.metrics:
        return None
    last = service.metrics[-1]
    drafted, accepted = last[_DRAFTED], last[_ACCEPTED]
    lately = service.between(_DRAFTED)
    if lately is not None and lately >= LIMITS.drafted:
        drafted, accepted = lately, service.between(_ACCEPTED) or 0.0
    return (accepted / drafted, drafted) if drafted >= LIMITS.drafted else None


def _collapse(facts: Facts) -> Iterator[Sight]:
    for name, service, planned in facts.each():
        share = _share(service)
        if share is None or share[0] >= LIMITS.collapsed:
            continue
        symptom = f"{share[0]:.1%} of {share[1]:.0f} drafted tokens accepted"
        cached = service.container and "enable_prefix_caching" in service.container.arguments
        if planned and planned.corrupts and cached:
            yield Sight(symptom, name)
        else:
            yield Sight(
                symptom,
                name,
                cause="the drafter does not fit body or context: another model's, a sliding window "
                "that the tag ignores beyond 2048 tokens, or a cache that an old tag corrupted",
                remedy="restart the service and look again; then tag 2026-06-11-pr41703 or later, "
                "and sparkwright verify INVENTORY for body and drafter",
            )


def _low(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        share = _share(service)
        if share is not None and LIMITS.collapsed <= share[0] < LIMITS.low:
            yield Sight(f"{share[0]:.1%} of {share[1]:.0f} drafted tokens accepted", name)


def _no_drafts(facts: Facts) -> Iterator[Sight]:
    for name, service, planned in facts.each():
        if not planned or not planned.speculates or not service.metrics:
            continue
        last = service.metrics[-1]
        if last["generation_tokens_total"] > 100 and last[_DRAFTED] == 0:
            yield Sight(
                f"{last['generation_tokens_total']:.0f} tokens generated, none drafted", name
            )


def _cache(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        looks = service.metrics
        if looks and all(look["kv_cache_usage_perc"] >= LIMITS.cache_full for look in looks):
            used, waiting = (looks[-1][one] for one in ("kv_cache_usage_perc", _WAITING))
            yield Sight(f"KV cache {used:.0%} used, {waiting:.0f} requests wait", name)


def _preempted(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        risen = service.between("num_preemptions_total")
        if risen:
            yield Sight(f"{risen:.0f} requests preempted between two looks", name)


def _queue(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        if len(service.metrics) < 2 or _still(service):
            continue
        last = service.metrics[-1]
        slots = service.container.number("max_num_seqs") if service.container else None
        mean = _mean(service, "time_to_first_token_seconds")
        waiting = all(look[_WAITING] > 0 for look in service.metrics)
        full = slots is not None and last["num_requests_running"] >= slots
        slow = mean is not None and mean > LIMITS.queue_seconds
        if waiting and (full or slow):
            words = [f"{last['num_requests_running']:.0f} requests run"]
            words += [f"{last[_WAITING]:.0f} wait"]
            words += [f"{mean:.1f} s to the first token"] if mean else []
            yield Sight(", ".join(words), name)


def _mean(service: ServiceSeen, name: str) -> float | None:
    """Mean of a histogram between the two looks."""
    count, total = service.between(f"{name}_count"), service.between(f"{name}_sum")
    return total / count if count and total is not None else None


def _ended(service: ServiceSeen) -> tuple[float, dict[str, float]]:
    if not service.metrics:
        return 0.0, {}
    prefix = "vllm:request_success_total:"
    reasons = {
        name.removeprefix(prefix): value
        for name, value in service.metrics[-1].values.items()
        if name.startswith(prefix)
    }
    return sum(reasons.values()), reasons


def _cut(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        cut = reasons.get("length", 0.0)
        if total >= 20 and cut > total / 2:
            yield Sight(f"{cut:.0f} of {total:.0f} answers ended with finish_reason length", name)


def _aborted(facts: Facts) -> Iterator[Sight]:
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        gone = reasons.get("abort", 0.0)
        if total >= 20 and gone > total / 4:
            yield Sight(f"{gone:.0f} of {total:.0f} requests were given up by their clients", name)


def _boots(facts: Facts) -> Iterator[tuple[str, ServiceSeen, Planned, float]]:
    for name, service, planned in facts.each():
        runs = service.container is not None and service.container.running
        if service.active and runs and planned and service.health.get("code") is None:
            yield name, service, planned, facts.uptime(service)


def _booting(facts: Facts) -> Iterator[Sight]:
    for name, _, planned, seconds in _boots(facts):
        if seconds <= planned.boot_seconds:
            yield Sight(f"no /health yet, {seconds / 60:.0f} min after start", name)


def _no_boot(facts: Facts) -> Iterator[Sight]:
    for name, service, planned, seconds in _boots(facts):
        if seconds > planned.boot_seconds:
            said = service.health.get("said")
            yield Sight(f"no /health {seconds / 60:.0f} min after start: {said}", name)


CHECKS = (
    Check(
        "wedge", Severity.ERROR,
        "the engine hangs while its front end lives: /health says nothing about generation",
        "sudo systemctl restart UNIT; a door (door: true) notices it by itself; if it comes "
        "again: max_num_batched_tokens: 32768, or the tag before (sparkwright rollback)",
        "reference hosts, Containers ('Wedge'); reference hosts, Memory and disk", _wedge,
    ),
    Check(
        "first-request", Severity.WARNING,
        "the first request specialises CUDA graphs: about 30 s, once per start",
        "wait; a deploy sends two warm-ups before it counts a service as ready",
        "seed 002, troubleshooting", _first,
    ),
    Check(
        "acceptance-collapse", Severity.ERROR,
        "rejected drafts corrupted the drafter's KV cache: on this tag prefix caching makes it "
        "last until a restart, about six times slower",
        "restart the service now; then tag 2026-06-11-pr41703 or later, or "
        "enable_prefix_caching: false",
        "seed 000, defects of PR 41703; seed 003, fixes of 2026-06-11", _collapse,
    ),
    Check(
        "acceptance-low", Severity.WARNING,
        "few drafts fit: sampling (at T=0.7 the cards see 10 to 20 %) or text that nobody can "
        "foresee",
        "temperature 0 for agents and code; fewer num_speculative_tokens for prose",
        "seed 002, troubleshooting; seed 001, sampling", _low,
    ),
    Check(
        "no-drafts", Severity.ERROR,
        "the recipe drafts, and the server does not: speculation was switched off or not parsed",
        "sparkwright diff INVENTORY shows what runs; deploy again",
        "reference vllm, The server (Metrics)", _no_drafts,
    ),
    Check(
        "kv-cache-full", Severity.WARNING,
        "contexts and sequences want more KV cache than there is: requests wait or start anew",
        "fewer max_num_seqs, a smaller max_model_len, kv_cache_dtype fp8_e4m3 where the tag has "
        "it, or TurboQuant",
        "seed 002, troubleshooting; seed 000, recipe B", _cache,
    ),
    Check(
        "preemptions", Severity.WARNING,
        "the KV cache ran out in the middle of answers, which are computed again from the start",
        "fewer max_num_seqs, or a smaller max_model_len",
        "seed 002, troubleshooting", _preempted,
    ),
    Check(
        "queue-saturated", Severity.WARNING,
        "more requests than max_num_seqs takes, or than the memory's bandwidth feeds: beyond 64 "
        "at once the cards see seconds to the first token",
        "max_num_seqs: 16 and max_num_batched_tokens: 32768 at least; another replica behind a "
        "gateway",
        "seed 002, troubleshooting; seed 001, limits", _queue,
    ),
    Check(
        "answers-cut", Severity.WARNING,
        "thinking eats the budget: content is null and finish_reason is length",
        "clients ask for max_tokens of 2048 and more, or with enable_thinking false",
        "seed 001, common gotcha; seed 004, smoke test", _cut,
    ),
    Check(
        "clients-give-up", Severity.WARNING,
        "clients or a proxy time out before the answer is there",
        "longer time-outs (a first answer may take 30 s and more), or fewer requests at once",
        "seed 002, troubleshooting", _aborted,
    ),
    Check(
        "booting", Severity.WARNING,
        "a first boot loads weights, captures graphs and tunes kernels: 3 to 10 minutes",
        "wait; sudo journalctl -fu UNIT shows it",
        "seed 002, troubleshooting; reference hosts, Containers", _booting,
    ),
    Check(
        "boot-too-long", Severity.ERROR,
        "it hangs in its boot: a download that it should not need, or no memory to load into",
        "sudo journalctl -u UNIT; sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; restart it",
        "reference hosts, Containers and Memory", _no_boot,
    ),
)  # fmt: skip

"""vLLM's own counters: two looks at /metrics, and the whole life of the server."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.service import thresholds
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.evaluated import ACCEPTED, DRAFTED, compiling, drafting, still
from sparkwright.checks.service.facts import Facts
from sparkwright.findings.finding import Severity
from sparkwright.host.doctor import ServiceSeen

_WAITING = "num_requests_waiting"


def _first(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        if still(service) and compiling(facts, service, planned):
            yield Symptom(
                f"the first request runs, {facts.uptime(service):.0f} s after start", name
            )


def _low(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        if not (looks := drafting(service)):
            continue
        drafted, accepted = (looks[-1][one] - looks[0][one] for one in (DRAFTED, ACCEPTED))
        if drafted >= limits.drafted and limits.collapsed <= accepted / drafted < limits.low:
            observed = f"{accepted / drafted:.1%} of {drafted:.0f} drafted tokens accepted"
            yield Symptom(observed, name)


def _no_drafts(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        if not planned or not planned.speculates or not service.metrics:
            continue
        last = service.metrics[-1]
        if last["generation_tokens_total"] > 100 and last[DRAFTED] == 0:
            yield Symptom(
                f"{last['generation_tokens_total']:.0f} tokens generated, none drafted", name
            )


def _preempted(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        risen = service.between("num_preemptions_total")
        if risen:
            yield Symptom(f"{risen:.0f} requests preempted between two looks", name)


def _queue(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if len(service.metrics) < 2 or still(service):
            continue
        last = service.metrics[-1]
        slots = service.container.number("max_num_seqs") if service.container else None
        mean = _mean(service, "time_to_first_token_seconds")
        waiting = all(look[_WAITING] > 0 for look in service.metrics)
        full = slots is not None and last["num_requests_running"] >= slots
        slow = mean is not None and mean > thresholds.THRESHOLDS.queue_seconds
        if waiting and (full or slow):
            words = [f"{last['num_requests_running']:.0f} requests run"]
            words += [f"{last[_WAITING]:.0f} wait"]
            words += [f"{mean:.1f} s to the first token"] if mean else []
            yield Symptom(", ".join(words), name)


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


def _cut(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        cut = reasons.get("length", 0.0)
        if total >= limits.ended and cut > limits.cut * total:
            yield Symptom(f"{cut:.0f} of {total:.0f} answers ended with finish_reason length", name)


def _aborted(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.THRESHOLDS
    for name, service, _ in facts.each():
        total, reasons = _ended(service)
        gone = reasons.get("abort", 0.0)
        if total >= limits.ended and gone > limits.abandoned * total:
            yield Symptom(
                f"{gone:.0f} of {total:.0f} requests were given up by their clients", name
            )


def _booting(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        seconds = facts.uptime(service)
        starting = service.active and seconds and service.health.code is None
        if planned and starting and seconds <= planned.boot_seconds:
            yield Symptom(f"no /health yet, {seconds / 60:.0f} min after start", name)


CHECKS = (
    Check(
        "wedge", Severity.ERROR,
        "the engine hangs while its front end lives: /health says nothing about generation",
        "sudo systemctl restart UNIT; a proxy (proxy: true) notices it by itself; if it comes "
        "again: max_num_batched_tokens: 32768, or the tag before (sparkwright rollback)",
        "NVIDIA's playbooks and reports of users",
    ),
    Check(
        "first-request", Severity.WARNING,
        "the first request specialises CUDA graphs: about 30 s, once per start",
        "wait; a deploy sends two warm-ups before it counts a service as ready",
        "card of vllm-dflash, troubleshooting", _first,
    ),
    Check(
        "acceptance-collapse", Severity.ERROR,
        "rejected drafts corrupted the drafter's KV cache: on this tag prefix caching makes it "
        "last until a restart, about six times slower",
        "restart the service now; then tag 2026-06-11-pr41703 or later, or "
        "enable_prefix_caching: false",
        "card of vllm-ultimate-dgx-spark, defects of PR 41703; card of "
        "Gemma-4-26B-A4B-it-Uncensored-NVFP4, fixes of 2026-06-11",
    ),
    Check(
        "acceptance-low", Severity.WARNING,
        "few drafts fit: sampling (at T=0.7 the cards see 10 to 20 %) or text that is hard to "
        "predict",
        "temperature 0 for agents and code; fewer num_speculative_tokens for prose",
        "card of vllm-dflash, troubleshooting; card of Qwen3.6-35B-A3B-heretic-NVFP4, "
        "sampling", _low,
    ),
    Check(
        "no-drafts", Severity.ERROR,
        "the recipe drafts, and the server does not: speculation was switched off or not parsed",
        "sparkwright diff INVENTORY shows what runs; deploy again",
        "vLLM itself, as observed", _no_drafts,
    ),
    Check(
        "kv-cache-full", Severity.WARNING,
        "contexts and sequences need more KV cache than there is: requests wait or start again",
        "fewer max_num_seqs, a smaller max_model_len, kv_cache_dtype fp8_e4m3 where the tag has "
        "it, or TurboQuant",
        "card of vllm-dflash, troubleshooting; card of vllm-ultimate-dgx-spark, recipe B",
    ),
    Check(
        "preemptions", Severity.WARNING,
        "the KV cache ran out in the middle of answers, which are computed again from the start",
        "fewer max_num_seqs, or a smaller max_model_len",
        "card of vllm-dflash, troubleshooting", _preempted,
    ),
    Check(
        "queue-saturated", Severity.WARNING,
        "more requests than max_num_seqs takes, or than the memory's bandwidth feeds: beyond 64 "
        "at once the cards see seconds to the first token",
        "max_num_seqs: 16 and max_num_batched_tokens: 32768 at least; another replica behind the "
        "load balancer",
        "card of vllm-dflash, troubleshooting; card of Qwen3.6-35B-A3B-heretic-NVFP4, "
        "limits", _queue,
    ),
    Check(
        "answers-cut", Severity.WARNING,
        "thinking eats the budget: content is null and finish_reason is length",
        "clients ask for max_tokens of 2048 and more, or with enable_thinking false",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, common gotcha; card of vllm-spark-omni-q36, "
        "smoke test", _cut,
    ),
    Check(
        "clients-give-up", Severity.WARNING,
        "clients or a proxy time out before the answer is there",
        "longer time-outs (a first answer may take 30 s and more), or fewer requests at once",
        "card of vllm-dflash, troubleshooting", _aborted,
    ),
    Check(
        "booting", Severity.WARNING,
        "a first boot loads weights, captures graphs and tunes kernels: 3 to 10 minutes",
        "wait; sudo journalctl -fu UNIT shows it",
        "card of vllm-dflash, troubleshooting; NVIDIA's playbooks and reports of users", _booting,
    ),
    Check(
        "not-serving", Severity.ERROR,
        "/health gives no 200 although the unit runs longer than a boot may take: it hangs, in its "
        "boot for a download that it should not need, or for no memory to load into",
        "sudo journalctl -u UNIT; sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; restart it",
        "NVIDIA's playbooks and reports of users", vague=True,
    ),
)  # fmt: skip

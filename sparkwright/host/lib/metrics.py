"""vLLM's /metrics: counters and gauges in Prometheus' text form."""

from __future__ import annotations

import re
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from sparkwright.host.lib.http import Server

GENERATED = "vllm:generation_tokens_total"
READ = "vllm:prompt_tokens_total"
STEPS = "vllm:iteration_tokens_total_count"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
CACHE = "vllm:kv_cache_usage_perc"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
CACHE_CONFIG = "vllm:cache_config_info"
#: What rises with all that an engine does.
PROGRESS = (GENERATED, READ, STEPS)

_SAMPLE = re.compile(r"^(vllm:[a-z0-9_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_REASON = re.compile(r'finished_reason="([a-z_]+)"')
#: Parts of histograms, dates and sums that other samples hold.
_NO_TOTAL = ("_bucket", "_created", "_info", "_by_reason")


def samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Name, labels as they stand there, and value of every sample that vLLM names, of numbers."""
    for name, labels, value in _SAMPLE.findall(text):
        try:
            found = float(value)
        except ValueError:
            continue
        if found - found == 0:  # neither NaN nor without end
            yield name, labels, found


def totals(text: str) -> dict[str, float]:
    """vLLM's counters and gauges over all engines and models.

    Histograms give their ``_sum`` and ``_count``; requests that ended are kept apart by reason, as
    ``vllm:request_success_total:length``. Shares (``_perc``) give the highest, not the sum.
    """
    found: dict[str, float] = {}
    for name, labels, value in samples(text):
        if name.endswith(_NO_TOTAL):
            continue
        reason = _REASON.search(labels)
        key = f"{name}:{reason[1]}" if reason else name
        before = found.get(key, 0.0)
        found[key] = max(before, value) if name.endswith("_perc") else before + value
    return found


def labels_of(text: str, name: str) -> dict[str, str]:
    """The labels of a sample, such as CACHE_CONFIG's; empty when it is not there."""
    found: dict[str, str] = {}
    for one, labels, _ in samples(text):
        if one == name:
            found.update(_LABEL.findall(labels))
    return found


def progress(found: dict[str, float]) -> float:
    """All that the engines did so far, by its counters."""
    return sum(found.get(name, 0.0) for name in PROGRESS)


def ask(server: Server) -> dict[str, float] | None:
    """A server's totals now; None when it does not report them."""
    from sparkwright.host.lib.http import NoAnswer  # parsing alone needs no HTTP

    try:
        answer = server.get("/metrics")
    except NoAnswer:
        return None
    return totals(answer.text) if answer.status == 200 else None

"""Metrics of an engine under neutral names: counters and gauges in Prometheus' text form.

Which of an engine's metrics has which neutral name comes with each request or configuration, as
``names``: the engine's own name -> the neutral one. ``own{label}`` is the text of a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sparkwright.host.lib.http import NoAnswer, Server

#: Tokens of answers and of prompts, and steps of the engine.
GENERATED, READ, STEPS = "generated", "prompt_tokens", "steps"
#: Requests now; those that were taken back and started anew; and, by reason, those that ended.
RUNNING, WAITING, PREEMPTED, ENDED = "running", "waiting", "preempted", "ended"
#: Requests by the tokens of their answer; smoke tests and health checks ask for at most 50.
BUDGET, SHORT = "budget", "budget:50.0"
#: The used share of the KV cache.
CACHE = "cache_used"
DRAFTS, DRAFTED, ACCEPTED = "drafts", "drafted", "accepted"
PREFIX_HITS, PREFIX_QUERIES = "prefix_hits", "prefix_queries"
#: Seconds to the first token, over all requests, and the number of requests.
FIRST_TOKEN_SUM, FIRST_TOKEN_COUNT = "first_token_sum", "first_token_count"
#: Texts: tokens of a block of the KV cache, the number of blocks, and whether prefixes are kept.
BLOCK, BLOCKS, PREFIX_CACHING = "cache_block", "cache_blocks", "prefix_caching"
#: What rises with all that an engine does, and its sum.
PROGRESS = (GENERATED, READ, STEPS)
PROGRESSED = "progress"
#: What is kept of a server at each look of the watch.
WATCHED = (GENERATED, RUNNING, WAITING, CACHE, DRAFTED, ACCEPTED)

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_REASON = re.compile(r'(?:finished_reason|le)="([a-z0-9_.]+)"')


def samples(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Neutral name, labels as they stand there, and value of every sample, of numbers."""
    for own, labels, value in _SAMPLE.findall(text):
        if own not in names:
            continue
        try:
            number = float(value)
        except ValueError:
            continue
        if number - number == 0:  # neither NaN nor without end
            yield names[own], labels, number


def totals(text: str, names: Mapping[str, str]) -> dict[str, float]:
    """Counters and gauges over all engines and models of a server.

    Requests that ended are kept apart by reason, as ``ended:length``, and buckets of a histogram
    by their limit. Of shares the highest counts, not the sum.
    """
    result: dict[str, float] = {}
    for name, labels, value in samples(text, names):
        reason = _REASON.search(labels)
        key = f"{name}:{reason[1]}" if reason else name
        before = result.get(key, 0.0)
        result[key] = max(before, value) if name == CACHE else before + value
    return result


def texts(text: str, names: Mapping[str, str]) -> dict[str, str]:
    """Labels that have a neutral name, such as BLOCK; without missing labels."""
    result: dict[str, str] = {}
    for own, labels, _ in _SAMPLE.findall(text):
        for label, value in _LABEL.findall(labels):
            if name := names.get(f"{own}{{{label}}}"):
                result[name] = value
    return result


def progress(figures: dict[str, float]) -> float:
    """All that the engines did so far, by its counters."""
    return sum(figures.get(name, 0.0) for name in PROGRESS)


def ask(server: Server, names: Mapping[str, str]) -> dict[str, float] | None:
    """A server's totals now; None when it does not report them."""
    try:
        answer = server.get("/metrics")
    except NoAnswer:
        return None
    return totals(answer.text, names) if answer.status == 200 else None

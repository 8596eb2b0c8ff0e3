"""Metrics of an engine under neutral names: counters and gauges in Prometheus' text format.

Each request or configuration brings ``names``, which maps the engine's own metric names to neutral
names; ``own{label}`` is the text of a label.
"""

import re
from collections.abc import Iterator, Mapping

from sparkwright.host.lib.http import NoAnswer, Server

#: Counters: tokens of answers and of prompts, and steps of the engine.
GENERATED, READ, STEPS = "generated", "prompt_tokens", "steps"
#: Present requests; preempted requests; and ended requests by reason.
RUNNING, WAITING, PREEMPTED, ENDED = "running", "waiting", "preempted", "ended"
#: Requests by the tokens of their answer; smoke tests and health checks request at most 50
#: tokens.
BUDGET, SHORT = "budget", "budget:50.0"
#: The used share of the KV cache.
CACHE = "cache_used"
DRAFTS, DRAFTED, ACCEPTED = "drafts", "drafted", "accepted"
PREFIX_HITS, PREFIX_QUERIES = "prefix_hits", "prefix_queries"
#: Seconds to the first token, over all requests, and the number of requests.
FIRST_TOKEN_SUM, FIRST_TOKEN_COUNT = "first_token_sum", "first_token_count"
#: Texts: tokens of a block of the KV cache, the number of blocks, and whether prefixes are kept.
BLOCK, BLOCKS, PREFIX_CACHING = "cache_block", "cache_blocks", "prefix_caching"
#: Counters that rise with an engine's work, and the name of their sum.
PROGRESS = (GENERATED, READ, STEPS)
PROGRESSED = "progress"
#: Metrics that the watch keeps in each sample of a server.
WATCHED = (GENERATED, RUNNING, WAITING, CACHE, DRAFTED, ACCEPTED)

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_REASON = re.compile(r'(?:finished_reason|le)="([a-z0-9_.]+)"')


def samples(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Yield the neutral name, the labels as printed, and the value of every finite sample."""
    for own, labels, value in _SAMPLE.findall(text):
        if own not in names:
            continue
        try:
            number = float(value)
        except ValueError:
            continue
        if number - number == 0:  # a finite number
            yield names[own], labels, number


def totals(text: str, names: Mapping[str, str]) -> dict[str, float]:
    """Return counters and gauges, summed over all engines and models of a server.

    Ended requests are counted by reason, as in ``ended:length``, and a histogram's buckets by their
    limit. For shares, the highest value counts and not the sum.
    """
    result: dict[str, float] = {}
    for name, labels, value in samples(text, names):
        reason = _REASON.search(labels)
        key = f"{name}:{reason[1]}" if reason else name
        before = result.get(key, 0.0)
        result[key] = max(before, value) if name == CACHE else before + value
    return result


def texts(text: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return labels with a neutral name, such as BLOCK; missing labels are left out."""
    result: dict[str, str] = {}
    for own, labels, _ in _SAMPLE.findall(text):
        for label, value in _LABEL.findall(labels):
            if name := names.get(f"{own}{{{label}}}"):
                result[name] = value
    return result


def progress(figures: dict[str, float]) -> float:
    """Return the sum of an engine's counters of work."""
    return sum(figures.get(name, 0.0) for name in PROGRESS)


def ask(server: Server, names: Mapping[str, str]) -> dict[str, float] | None:
    """Return a server's present totals; None if the server reports no metrics."""
    try:
        answer = server.get("/metrics")
    except NoAnswer:
        return None
    return totals(answer.text, names) if answer.status == 200 else None

"""What vLLM counts, read from ``/metrics``."""

from __future__ import annotations

import re
from dataclasses import dataclass

DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
PREFIX_HITS = "vllm:prefix_cache_hits_total"
PREFIX_QUERIES = "vllm:prefix_cache_queries_total"
RUNNING = "vllm:num_requests_running"
_CACHE = "vllm:cache_config_info"


@dataclass(frozen=True)
class Counters:
    """A moment's counts, summed over all engines.

    Attributes:
        cache: how the KV cache is set up, as vLLM tells it (all values are text).
    """

    values: dict[str, float]
    cache: dict[str, str]

    def since(self, before: Counters, name: str) -> float:
        """How far a counter rose; a counter that is not there counts as 0."""
        return self.values.get(name, 0.0) - before.values.get(name, 0.0)

    @property
    def block(self) -> int:
        """Tokens of a block of the KV cache; 16, vLLM's least, where it is not told."""
        text = self.cache.get("block_size", "")
        return int(text) if text.isdigit() else 16


def parse(text: str) -> Counters:
    """The counters of a page of metrics in Prometheus' text form."""
    values: dict[str, float] = {}
    cache: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name = line.partition("{")[0].partition(" ")[0]
        if name == _CACHE:
            cache.update(re.findall(r'(\w+)="([^"]*)"', line))
        else:
            values[name] = values.get(name, 0.0) + float(line.rpartition(" ")[2])
    return Counters(values, cache)

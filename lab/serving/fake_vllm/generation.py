"""A fake engine: it yields prepared tokens at a set pace, and updates all metrics.

Requests beyond `--max-num-seqs` wait. A repeated beginning of a prompt counts as prefix cache hits,
in blocks of 16 tokens. With a speculative config, a step yields one token and the draft's accepted
tokens.
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from .faults import Faults
from .metrics import Metrics
from .rank_link import Ranks
from .server_settings import Settings

_BLOCK = 16
_REMEMBERED_BLOCKS = 65536
_TICK = 0.01
"""Length of a tick in seconds; all tokens that are due in a tick are yielded together."""


@dataclass
class Generation:
    """A running request: its prompt, the tokens it will yield, and its progress.

    finish: `length` if max_tokens cut the answer, otherwise `stop`.
    seed: number that makes the speculation repeatable.
    arrived, first_token: times of the monotonic clock; first_token is 0 before the first token.
    """

    prompt: list[str]
    tokens: list[str]
    max_tokens: int
    seed: int
    finish: str = "stop"
    arrived: float = field(default_factory=time.monotonic)
    first_token: float = 0.0


class Engine:
    """Engine that runs the generations of one server."""

    def __init__(self, settings: Settings, metrics: Metrics, faults: Faults, ranks: Ranks) -> None:
        self._settings = settings
        self._metrics = metrics
        self._faults = faults
        self._ranks = ranks
        self._slots = asyncio.Semaphore(settings.max_num_seqs)
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self._seconds_per_token = 1 / float(os.environ.get("FAKE_VLLM_TOKENS_PER_SECOND") or "400")
        self._first_token_seconds = float(os.environ.get("FAKE_VLLM_FIRST_TOKEN_SECONDS") or "0")

    async def run(self, generation: Generation) -> AsyncGenerator[int, None]:
        """Yield the number of tokens that are due, step by step, up to the end of the generation.

        If the caller closes the generator, since its client has gone, the request counts as
        aborted.
        """
        metrics = self._metrics
        metrics.add("vllm:num_requests_waiting")
        metrics.add("vllm:num_requests_waiting_by_reason", reason="capacity")
        try:
            await self._slots.acquire()
        finally:
            metrics.add("vllm:num_requests_waiting", -1)
            metrics.add("vllm:num_requests_waiting_by_reason", -1, reason="capacity")
        metrics.add("vllm:num_requests_running")
        begun = time.monotonic()
        reason = "abort"
        try:
            cached = self._count_prompt(generation)
            running = metrics.get("vllm:num_requests_running")
            self._faults.while_running(running, self._settings.max_num_seqs)
            self._ranks.before_generation()
            await self._faults.before_generation()
            if self._first_token_seconds:
                await asyncio.sleep(self._first_token_seconds)
            async for step in self._paced(generation, begun):
                yield step
            reason = generation.finish
            self._count_done(generation, begun, cached)
        finally:
            metrics.add("vllm:num_requests_running", -1)
            metrics.add("vllm:request_success_total", finished_reason=reason)
            metrics.set("vllm:kv_cache_usage_perc", self._cache_usage())
            self._slots.release()

    async def _paced(self, generation: Generation, begun: float) -> AsyncIterator[int]:
        metrics = self._metrics
        start = time.monotonic()
        last = None
        done = 0
        step = 0
        while done < len(generation.tokens):
            due = start + done * self._seconds_per_token
            while due - time.monotonic() > 0:
                await asyncio.sleep(min(due - time.monotonic(), 0.5) if due > start else 0)
            horizon = time.monotonic() + _TICK
            first = done
            while done < len(generation.tokens) and (
                done == first or start + done * self._seconds_per_token < horizon
            ):
                done = min(len(generation.tokens), done + self._step(step, generation.seed))
                step += 1
            now = time.monotonic()
            if last is None:
                generation.first_token = now
                metrics.observe("vllm:time_to_first_token_seconds", now - generation.arrived)
                metrics.observe("vllm:request_prefill_time_seconds", now - begun)
            else:
                metrics.observe("vllm:inter_token_latency_seconds", now - last)
            last = now
            metrics.add("vllm:generation_tokens_total", done - first)
            metrics.observe("vllm:iteration_tokens_total", done - first)
            yield done - first

    def _step(self, step: int, seed: int) -> int:
        speculation = self._settings.speculation
        if speculation is None or self._faults.no_drafts:
            return 1
        accepted = 0 if self._faults.no_acceptance else speculation.accepted(step, seed)
        metrics = self._metrics
        metrics.add("vllm:spec_decode_num_drafts_total")
        metrics.add("vllm:spec_decode_num_draft_tokens_total", speculation.tokens)
        metrics.add("vllm:spec_decode_num_accepted_tokens_total", accepted)
        for position in range(accepted):
            metrics.add(
                "vllm:spec_decode_num_accepted_tokens_per_pos_total", position=str(position)
            )
        return 1 + accepted

    def _count_prompt(self, generation: Generation) -> int:
        """Count the prompt and its cached part; return the cached tokens."""
        metrics = self._metrics
        size = len(generation.prompt)
        caches = self._settings.prefix_caching and not self._faults.no_prefix_hits
        cached = self._cached_tokens(generation.prompt) if caches else 0
        metrics.add("vllm:prompt_tokens_total", size)
        metrics.add("vllm:prompt_tokens_by_source_total", size - cached, source="local_compute")
        metrics.add("vllm:prompt_tokens_by_source_total", cached, source="local_cache_hit")
        metrics.add("vllm:prompt_tokens_cached_total", cached)
        if self._settings.prefix_caching:
            metrics.add("vllm:prefix_cache_queries_total", size)
            metrics.add("vllm:prefix_cache_hits_total", cached)
        metrics.set("vllm:kv_cache_usage_perc", self._cache_usage())
        return cached

    def _cached_tokens(self, prompt: list[str]) -> int:
        chain = 0
        cached = 0
        for end in range(_BLOCK, len(prompt), _BLOCK):
            chain = hash((chain, *prompt[end - _BLOCK : end]))
            if chain in self._blocks:
                self._blocks.move_to_end(chain)
                cached += _BLOCK
            else:
                self._blocks[chain] = None
        while len(self._blocks) > _REMEMBERED_BLOCKS:
            self._blocks.popitem(last=False)
        return cached

    def _cache_usage(self) -> float:
        running = self._metrics.get("vllm:num_requests_running")
        return min(1.0, running / max(1, self._settings.max_num_seqs))

    def _count_done(self, generation: Generation, begun: float, cached: int) -> None:
        now = time.monotonic()
        count = len(generation.tokens)
        observe = self._metrics.observe
        observe("vllm:request_prompt_tokens", len(generation.prompt))
        observe("vllm:request_prefill_kv_computed_tokens", len(generation.prompt) - cached)
        observe("vllm:request_generation_tokens", count)
        observe("vllm:request_max_num_generation_tokens", count)
        observe("vllm:request_params_max_tokens", generation.max_tokens)
        observe("vllm:request_params_n", 1)
        observe("vllm:request_num_preemptions", 0)
        observe("vllm:e2e_request_latency_seconds", now - generation.arrived)
        observe("vllm:request_queue_time_seconds", begun - generation.arrived)
        observe("vllm:request_inference_time_seconds", now - begun)
        # As in vLLM, the time of decoding begins with the first token, after the prompt's time.
        decoding = now - generation.first_token
        observe("vllm:request_decode_time_seconds", decoding)
        if count > 1:
            observe("vllm:request_time_per_output_token_seconds", decoding / (count - 1))

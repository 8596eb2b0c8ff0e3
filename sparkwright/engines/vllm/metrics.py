"""vLLM's metrics, by the neutral names of ``sparkwright.host.lib.metrics``."""

from __future__ import annotations

from collections.abc import Mapping

from sparkwright.host.lib import metrics

METRICS: Mapping[str, str] = {
    metrics.GENERATED: "vllm:generation_tokens_total",
    metrics.READ: "vllm:prompt_tokens_total",
    metrics.STEPS: "vllm:iteration_tokens_total_count",
    metrics.RUNNING: "vllm:num_requests_running",
    metrics.WAITING: "vllm:num_requests_waiting",
    metrics.PREEMPTED: "vllm:num_preemptions_total",
    metrics.ENDED: "vllm:request_success_total",
    metrics.CACHE: "vllm:kv_cache_usage_perc",
    metrics.DRAFTS: "vllm:spec_decode_num_drafts_total",
    metrics.DRAFTED: "vllm:spec_decode_num_draft_tokens_total",
    metrics.ACCEPTED: "vllm:spec_decode_num_accepted_tokens_total",
    metrics.PREFIX_HITS: "vllm:prefix_cache_hits_total",
    metrics.PREFIX_QUERIES: "vllm:prefix_cache_queries_total",
    metrics.FIRST_TOKEN_SUM: "vllm:time_to_first_token_seconds_sum",
    metrics.FIRST_TOKEN_COUNT: "vllm:time_to_first_token_seconds_count",
    metrics.BLOCK: "vllm:cache_config_info{block_size}",
    metrics.BLOCKS: "vllm:cache_config_info{num_gpu_blocks}",
    metrics.PREFIX_CACHING: "vllm:cache_config_info{enable_prefix_caching}",
}

GRAPHS: Mapping[str, str] = {
    "between_tokens": "vllm:inter_token_latency_seconds",
    "whole_request": "vllm:e2e_request_latency_seconds",
    "queue": "vllm:request_queue_time_seconds",
    "accepted_by_position": "vllm:spec_decode_num_accepted_tokens_per_pos_total",
}

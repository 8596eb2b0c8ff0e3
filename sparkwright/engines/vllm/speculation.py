"""How vLLM divides its batch under speculative decoding."""

from __future__ import annotations

from sparkwright.engines.vllm.table import release

#: The first version that takes drafts out of the budget step by step, as they are made.
ADAPTIVE_SINCE = (0, 28, 0)


def reserves_for_every_sequence(vllm: str | None) -> bool:
    """Whether a version sets draft slots aside for max_num_seqs; an unknown one is taken to."""
    return vllm is None or release(vllm) < ADAPTIVE_SINCE


def scheduled_token_budget(
    max_num_batched_tokens: int,
    max_num_seqs: int,
    num_speculative_tokens: int,
    vllm: str | None = None,
) -> int:
    """Tokens a step may schedule under DFlash; vLLM refuses to start when it is not positive.

    vLLM calls it max_num_scheduled_tokens. Up to 0.27.0 it sets ``num_speculative_tokens - 1``
    slots aside for every sequence that may run: with 11 tokens, 256 sequences and 2048 batched
    tokens it says -512. From 0.28.0 on nothing is set aside, and only one sequence's
    ``num_speculative_tokens`` must leave room for a token: the same settings start.

    Args:
        vllm: the version; None where no card says it, and then the older, stricter way counts.

    Source: VllmConfig._set_max_num_scheduled_tokens and
    SpeculativeConfig.max_num_new_slots_for_drafting, as 0.23.0, 0.24.0, 0.26.0 to 0.30.0 and
    0.32.0 have them.
    """
    if reserves_for_every_sequence(vllm):
        return max_num_batched_tokens - max_num_seqs * (num_speculative_tokens - 1)
    left = max_num_batched_tokens - num_speculative_tokens
    return max_num_batched_tokens if left > 0 else left

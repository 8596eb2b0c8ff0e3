"""How vLLM divides its batch under speculative decoding."""

from __future__ import annotations


def scheduled_token_budget(
    max_num_batched_tokens: int, max_num_seqs: int, num_speculative_tokens: int
) -> int:
    """Tokens a step may schedule once every sequence's draft slots are set aside.

    vLLM calls it max_num_scheduled_tokens and refuses to start when it is not positive. Drafters
    that propose all tokens at once (DFlash) need ``num_speculative_tokens - 1`` slots a sequence:
    with 11 tokens, 256 sequences and 2048 batched tokens vLLM 0.24 and 0.32 say -512.
    """
    return max_num_batched_tokens - max_num_seqs * (num_speculative_tokens - 1)

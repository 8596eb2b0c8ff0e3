"""Speculative decoding as configured: its checks, and the resulting tokens of a step."""

import argparse
from dataclasses import dataclass
from typing import Any

from . import log
from .model import Model
from .option_table import Table
from .refusal import Refusal, invalid, invalid_value

_WITHOUT_DRAFTER = ("ngram", "ngram_gpu", "suffix")
"""Methods that propose without a drafter, and therefore take no room in the batch."""

_WITHOUT_SLOTS = (*_WITHOUT_DRAFTER, "mtp")
"""Methods of MTP heads, which draft one token after the other, without additional slots."""

_WITH_MTP = ("qwen3_5", "qwen3_5_moe", "gemma4_assistant")
"""Model types whose MTP heads vLLM loads, from the families in the lab."""

_ATTENTION_REASONS = {
    "nvfp4": {
        "FLASH_ATTN": "kv_cache_dtype not supported",
        "FLASHINFER": "non-causal attention not supported, "
        "nvfp4 KV cache in FlashInfer requires SM100",
        "TRITON_ATTN": "non-causal attention not supported",
        "FLEX_ATTENTION": "kv_cache_dtype not supported",
        "TURBOQUANT": "kv_cache_dtype not supported, non-causal attention not supported",
    },
    "fp8": {
        "FLASH_ATTN": "kv_cache_dtype not supported",
        "FLASHINFER": "non-causal attention not supported",
        "TRITON_ATTN": "non-causal attention not supported",
        "FLEX_ATTENTION": "kv_cache_dtype not supported",
        "TURBOQUANT": "kv_cache_dtype not supported, non-causal attention not supported",
    },
}
"""Reasons why no attention backend of the AEON build serves DFlash with such a KV cache."""


@dataclass(frozen=True)
class Speculation:
    """Method, drafter directory (None without a drafter), draft tokens a step, and backend."""

    method: str
    drafter: str | None
    tokens: int
    attention_backend: str | None

    def check_token_budget(self, batched: int, seqs: int) -> None:
        """Raise Refusal if the draft slots leave no room in a step.

        Each sequence takes one slot per draft token except the first: with 11 draft tokens, 256
        sequences and 2048 tokens, 2048 - 256 * (11 - 1) = -512 are left.
        """
        left = batched - seqs * (self.tokens - 1)
        if self.method in _WITHOUT_SLOTS or left > 0:
            return
        raise invalid_value(
            "VllmConfig",
            f"max_num_scheduled_tokens is set to {left} based on the speculative decoding "
            "settings, which does not allow any tokens to be scheduled. Increase "
            "max_num_batched_tokens to accommodate the additional draft token slots, or decrease "
            "num_speculative_tokens or max_num_seqs.",
        )

    def accepted(self, step: int, seed: int) -> int:
        """Draft tokens accepted in a step: a third of 11, half of 4; the same for the same seed."""
        accepted = 0
        while accepted < self.tokens and (seed >> ((step * 7 + accepted * 3) % 120)) & 15 > 2:
            accepted += 1
        return accepted


def read_speculation(
    arguments: argparse.Namespace, table: Table, model: Model
) -> Speculation | None:
    """The speculative config of the arguments, or None; Refusal for a config that vLLM refuses.

    `model` is the served body, and also the drafter if its own MTP head drafts.
    """
    config = arguments.speculative_config
    for name, key in (
        ("spec_method", "method"),
        ("spec_model", "model"),
        ("spec_tokens", "num_speculative_tokens"),
    ):
        if getattr(arguments, name, None) is not None:
            config = {**(config or {}), key: getattr(arguments, name)}
    if config is None:
        return None
    if not isinstance(config, dict):
        raise Refusal("TypeError", "speculative_config must be a JSON object")
    return _checked(config, table, model)


def _checked(config: dict[str, Any], table: Table, model: Model) -> Speculation:
    for key in config:
        if key not in table.speculative_keys:
            raise invalid(
                "SpeculativeConfig",
                key,
                "Unexpected keyword argument [type=unexpected_keyword_argument, "
                f"input_value={config[key]!r}, input_type={type(config[key]).__name__}]",
            )
    method = config.get("method") or ("draft_model" if config.get("model") else None)
    if method not in table.speculative_methods:
        allowed = ", ".join(repr(name) for name in table.speculative_methods)
        raise invalid(
            "SpeculativeConfig",
            "method",
            f"Input should be {allowed} [type=literal_error, input_value={method!r}, "
            "input_type=str]",
        )
    tokens = config.get("num_speculative_tokens")
    if not isinstance(tokens, int) or tokens < 1:
        raise invalid(
            "SpeculativeConfig",
            "num_speculative_tokens",
            f"Input should be greater than 0 [type=greater_than, input_value={tokens!r}, "
            f"input_type={type(tokens).__name__}]",
        )
    drafter = config.get("model")
    if method.endswith("_mtp"):
        log.server(
            "WARNING",
            "speculative.py:590",
            f"method `{method}` is deprecated and replaced with mtp.",
        )
        method = "mtp"
    if drafter is None and method == "mtp":
        if model.config.get("model_type") not in _WITH_MTP:
            raise Refusal("NotImplementedError", f"Unsupported speculative method: '{method}'")
        drafter = model.path
    if drafter is None and method not in _WITHOUT_DRAFTER:
        raise invalid_value(
            "SpeculativeConfig",
            "num_speculative_tokens was provided but without speculative model.",
        )
    return Speculation(method, drafter, tokens, config.get("attention_backend"))


def check_kv_cache(speculation: Speculation, dtype: str, version: str) -> None:
    """Raise Refusal if DFlash finds no attention backend for the KV cache dtype.

    The drafter attends without causal order. NVFP4 is refused by every build so far, and FP8 by the
    build on 0.23.0.
    """
    if speculation.method != "dflash":
        return
    family = "nvfp4" if dtype == "nvfp4" else "fp8" if dtype.startswith("fp8") else ""
    if not family or (family == "fp8" and version != "0.23.0"):
        return
    reasons = ", ".join(f"{name}: [{why}]" for name, why in _ATTENTION_REASONS[family].items())
    raise Refusal(
        "ValueError",
        "No valid attention backend found for cuda with AttentionSelectorConfig(head_size=128, "
        f"dtype=torch.bfloat16, kv_cache_dtype={dtype}, block_size=None, use_mla=False, "
        "has_sink=False, use_sparse=False, use_mm_prefix=False, attn_type=AttentionType.DECODER, "
        f"use_non_causal=True). Reasons: {{{reasons}}}.",
        engine=True,
    )

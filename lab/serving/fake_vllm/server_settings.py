"""Settings from the arguments, and the mistakes that vLLM's config classes refuse.

argparse accepts these mistakes: vLLM finds them only after its start.
"""

import argparse
import os
from dataclasses import dataclass

from .identity import Identity
from .model import Model, open_model
from .option_table import Table
from .refusal import Refusal, invalid, invalid_value
from .speculation import Speculation, check_kv_cache, read_speculation

DEFAULT_MAX_NUM_SEQS = 256
DEFAULT_MAX_NUM_BATCHED_TOKENS = 2048
"""Defaults of vLLM's API server on a GPU of this class."""

DEFAULT_MAX_MODEL_LEN = 8192
"""Context length without a value in the arguments and in config.json."""

_OFFLINE_METHODS = ("compressed-tensors", "modelopt", "gptq", "awq")
"""Quantizations of a checkpoint, which need the checkpoint's quantization_config."""


@dataclass(frozen=True)
class Settings:
    """A checked configuration.

    names: served aliases; keys: accepted API keys, empty without authentication.
    """

    names: list[str]
    keys: list[str]
    model: Model
    max_model_len: int
    max_num_seqs: int
    reasoning_parser: str | None
    auto_tools: bool
    prefix_caching: bool
    kv_cache_dtype: str
    gpu_memory_utilization: float = 0.9
    force_usage: bool = False
    fingerprint: str | None = None
    speculation: Speculation | None = None
    drafter: Model | None = None
    shutdown_timeout: float = 5.0
    pooling: bool = False


def check_frontend(arguments: argparse.Namespace, table: Table) -> None:
    """Refuse parsers that the API server lacks, before its engine starts."""
    if arguments.enable_auto_tool_choice and not arguments.tool_call_parser:
        raise Refusal("TypeError", "Error: --enable-auto-tool-choice requires --tool-call-parser")
    _known_parser("tool call", arguments.tool_call_parser, table.tool_parsers)
    _known_parser("reasoning", arguments.reasoning_parser, table.reasoning_parsers)


def read_settings(arguments: argparse.Namespace, table: Table, identity: Identity) -> Settings:
    """The configuration of an engine, or the Refusal that vLLM ends with."""
    path = arguments.model_tag or arguments.model
    model = open_model(path)
    max_model_len = _max_model_len(arguments.max_model_len, model)
    _check_quantization(arguments.quantization, model, table)
    utilization = arguments.gpu_memory_utilization
    if utilization > 1 or utilization <= 0:
        raise invalid(
            "CacheConfig",
            "gpu_memory_utilization",
            f"Input should be {'less than or equal to 1' if utilization > 1 else 'greater than 0'}"
            f" [type={'less_than_equal' if utilization > 1 else 'greater_than'}, "
            f"input_value={utilization}, input_type=float]",
        )
    check_backend(arguments.attention_backend, table)
    batched = arguments.max_num_batched_tokens or DEFAULT_MAX_NUM_BATCHED_TOKENS
    seqs = arguments.max_num_seqs or DEFAULT_MAX_NUM_SEQS
    if batched < seqs:
        raise invalid_value(
            "SchedulerConfig",
            f"max_num_batched_tokens ({batched}) must be greater than or equal to "
            f"max_num_seqs ({seqs}).",
        )
    speculation = read_speculation(arguments, table, model)
    drafter = None
    if speculation:
        drafter = open_model(speculation.drafter) if speculation.drafter else None
        check_backend(speculation.attention_backend, table)
        speculation.check_token_budget(batched, seqs)
        check_kv_cache(speculation, arguments.kv_cache_dtype, identity.version)
    return Settings(
        names=arguments.served_model_name or [path],
        keys=[key for key in arguments.api_key or [os.environ.get("VLLM_API_KEY")] if key],
        model=model,
        max_model_len=max_model_len,
        max_num_seqs=seqs,
        reasoning_parser=arguments.reasoning_parser or None,
        auto_tools=bool(arguments.enable_auto_tool_choice),
        prefix_caching=arguments.enable_prefix_caching is not False,
        gpu_memory_utilization=utilization,
        kv_cache_dtype=arguments.kv_cache_dtype,
        force_usage=bool(arguments.enable_force_include_usage),
        fingerprint=f"vllm-{table.version}-fake",
        speculation=speculation,
        drafter=drafter,
        shutdown_timeout=float(arguments.shutdown_timeout),
        pooling=arguments.runner == "pooling",
    )


def check_backend(name: str | None, table: Table) -> None:
    """Accept an attention backend in any case; raise Refusal for a backend that the version
    lacks."""
    if name and name.upper() not in table.attention_backends and name.lower() != "auto":
        raise invalid_value(
            "AttentionConfig",
            f"Unknown attention backend: '{name.upper()}'. Valid options are: "
            + ", ".join(table.attention_backends),
        )


def _known_parser(kind: str, name: str | None, expected: list[str]) -> None:
    if name and name not in expected:
        text = f"invalid {kind} parser: {name} (chose from {{ {','.join(expected)} }})"
        raise Refusal("KeyError", repr(text))


def _max_model_len(asked: int | None, model: Model) -> int:
    derived = model.max_position_embeddings
    if asked is None or asked == -1:
        return derived or DEFAULT_MAX_MODEL_LEN
    if asked < 1:
        raise invalid(
            "ModelConfig",
            "max_model_len",
            "Input should be greater than or equal to -1 "
            f"[type=greater_than_equal, input_value={asked}, input_type=int]",
        )
    if derived and asked > derived and os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") != "1":
        raise invalid_value(
            "ModelConfig",
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={derived} or model_max_length=None in model's "
            "config.json). To allow overriding this maximum, set the env var "
            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1.",
        )
    return asked


def _check_quantization(asked: str | None, model: Model, table: Table) -> None:
    if not asked:
        return
    if asked not in table.quantization_methods:
        raise invalid_value(
            "ModelConfig",
            f"Unknown quantization method: {asked}. Must be one of {table.quantization_methods}.",
        )
    result = model.quant_method
    if result is None:
        if asked.startswith(_OFFLINE_METHODS):
            raise Refusal("ValueError", f"Cannot find the config file for {asked}", engine=True)
        return
    # `modelopt` covers `modelopt_fp4`, `awq` covers `awq_marlin`, and the like.
    if not (asked.startswith(result) or result.startswith(asked)):
        raise invalid_value(
            "ModelConfig",
            f"Quantization method specified in the model config ({result}) does not match the "
            f"quantization method specified in the `quantization` argument ({asked}).",
        )

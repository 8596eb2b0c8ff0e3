"""Arguments of a service by neutral names."""

import math
from collections.abc import Mapping
from typing import Any

from sparkwright.engines.arguments import amount, is_auto, mapping, whole
from sparkwright.engines.engine import Limits
from sparkwright.engines.vllm import data, memory

#: Values of ``--convert`` with which a model that writes text gives vectors or scores.
_POOLED = ("embed", "classify")


def limits(arguments: Mapping[str, Any]) -> Limits:
    """Limits in arguments of a plan, or of a container's command line, where values are texts."""
    context, config = arguments.get("max_model_len"), arguments.get("speculative_config")
    return Limits(
        context=0 if is_auto(context) else whole(arguments, "max_model_len"),
        sequences=whole(arguments, "max_num_seqs"),
        share=amount(arguments.get("gpu_memory_utilization")) or memory.DEFAULT_UTILIZATION,
        gpus=math.prod(whole(arguments, name) or 1 for name in data.PARALLEL),
        tools=_tools(arguments),
        reasoning=bool(arguments.get("reasoning_parser")),
        speculative=None if config is None else mapping(config) or {},
        caching=_flag(arguments, "enable_prefix_caching"),
        blind=_blind(arguments),
        remote_code=bool(_flag(arguments, "trust_remote_code")),
        pools=arguments.get("runner") == "pooling" or arguments.get("convert") in _POOLED,
        head=str(arguments.get("master_addr", ""))
        if (whole(arguments, "nnodes") or 1) > 1
        else None,
    )


def _flag(arguments: Mapping[str, Any], name: str) -> bool | None:
    """Return whether a flag is set: in a container's command line a flag has no value."""
    value = arguments.get(name)
    return None if value is None else value is not False


def _tools(arguments: Mapping[str, Any]) -> str | None:
    """Return the parser of tool calls; None without the flag, since vLLM then refuses requests that
    leave the choice of tools to the model.
    """
    parser = arguments.get("tool_call_parser")
    return str(parser) if parser and _flag(arguments, "enable_auto_tool_choice") else None


def _blind(arguments: Mapping[str, Any]) -> str | None:
    if _flag(arguments, "language_model_only"):
        return "language_model_only"
    limits = arguments.get("limit_mm_per_prompt")
    if isinstance(limits, dict) and limits.get("image") == 0:
        return "limit_mm_per_prompt without images"
    return None

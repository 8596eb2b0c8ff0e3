"""Arguments of a service by neutral names, and the KV cache that they make."""

import math
from collections.abc import Mapping
from typing import Any

from sparkwright.catalog import ArgumentValue, Model, Scalar
from sparkwright.engines.arguments import amount
from sparkwright.engines.engine import Limits
from sparkwright.engines.sglang.data import DATA, PARALLEL, PARSER

#: SGLang takes a share by the GPU's size where none is set: 0.83 to 0.90 (memory_hook.py).
DEFAULT_SHARE = 0.88
_NEWEST = PARSER.tables.versions()[-1]


def limits(arguments: Mapping[str, Any]) -> Limits:
    """Limits in arguments of a plan, or of a container's command line, where values are texts."""
    values = {PARSER.spelling(key, _NEWEST): value for key, value in arguments.items()}

    def whole(name: str) -> int | None:
        number = amount(values.get(name))
        return int(number) if number is not None and number > 0 else None

    def flag(name: str) -> bool:
        return values.get(name) not in (None, False)

    return Limits(
        context=whole("context_length"),
        sequences=whole("max_running_requests"),
        share=amount(values.get("mem_fraction_static")) or DEFAULT_SHARE,
        gpus=math.prod(whole(name) or 1 for name in PARALLEL),
        tools=str(values["tool_call_parser"]) if values.get("tool_call_parser") else None,
        reasoning=bool(values.get("reasoning_parser")),
        speculative=_speculative(values),
        caching=not flag("disable_radix_cache"),
        blind="language_model_only" if flag("language_model_only") else None,
        remote_code=flag("trust_remote_code"),
        pools=flag("is_embedding"),
        head=_head(values) if (whole("nnodes") or 1) > 1 else None,
    )


def _speculative(values: Mapping[str, Any]) -> Mapping[str, Scalar | None] | None:
    """Settings by the names that the catalog's issues have."""
    if not values.get("speculative_algorithm"):
        return None
    return {
        "method": str(values["speculative_algorithm"]).lower(),
        "model": values.get("speculative_draft_model_path"),
        "num_speculative_tokens": values.get("speculative_num_draft_tokens"),
    }


def _head(values: Mapping[str, Any]) -> str:
    return str(values.get("dist_init_addr", "")).rpartition(":")[0]


def kv_bytes(
    model: Model, arguments: Mapping[str, ArgumentValue | None], tokens: int
) -> float | None:
    """Bytes of a sequence's keys and values; None where the geometry of the cache is not known."""
    width = DATA["kv_bytes"].get(str(arguments.get("kv_cache_dtype") or "auto").lower())
    if not model.kv or width is None:
        return None
    return float(width) * 2 * sum(layer.numbers(tokens) for layer in model.kv)

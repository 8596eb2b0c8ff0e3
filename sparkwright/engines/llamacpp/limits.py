"""Arguments of a service by neutral names."""

from collections.abc import Mapping
from typing import Any

from sparkwright.engines.arguments import whole
from sparkwright.engines.engine import Limits

#: Slots that ``--parallel`` -1 starts, which share one KV cache (tools/server/server-context.cpp).
AUTO_SLOTS = 4


def limits(arguments: Mapping[str, Any]) -> Limits:
    """Limits in arguments of a plan, or of a container's command line, where values are texts."""
    size, count = whole(arguments, "ctx_size"), slots(arguments)
    shared = _flag(arguments, "kv_unified", default=whole(arguments, "parallel") is None)
    drafts = str(arguments.get("spec_type") or "none")
    ranks = _flag(arguments, "reranking")
    return Limits(
        # The context of all slots together; each slot has a part of the context, unless the slots
        # share the context.
        context=int((size or 0) / (1 if shared else count)),
        cache=size,
        sequences=count,
        tools="jinja" if _flag(arguments, "jinja", default=True) else None,
        reasoning=arguments.get("reasoning_format") != "none",
        speculative={"method": drafts} if drafts != "none" else None,
        caching=_flag(arguments, "cache_prompt", default=True),
        blind=None if _flag(arguments, "mmproj_auto", default=True) else "mmproj_auto: false",
        pools="rerank" if ranks else "embeddings" if _flag(arguments, "embeddings") else False,
    )


def slots(arguments: Mapping[str, Any]) -> int:
    """Number of requests that are served at once."""
    return whole(arguments, "parallel") or AUTO_SLOTS


def _flag(arguments: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """Return whether a flag is set: in a container's command line a flag has no value."""
    if f"no_{name}" in arguments:
        return False
    value = arguments.get(name)
    return default if value is None else value is not False

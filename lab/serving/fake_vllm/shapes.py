"""Parts that answers of several routes share, with keys in vLLM's order."""

import secrets
from typing import Any

LATER = ("0.32.0",)
"""Versions of vLLM whose answers have the newer keys."""


def new_id() -> str:
    """Sixteen hexadecimal digits, like the end of vLLM's identifiers."""
    return secrets.token_hex(8)


def usage(prompt: int, completion: int, version: str, *, details: bool = True) -> dict[str, Any]:
    """The usage object; without details in streams."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
    }
    if details:
        counts["prompt_tokens_details"] = None
        if version in LATER:
            counts["completion_tokens_details"] = None
    return counts


def transfer_params(version: str) -> dict[str, Any]:
    """The keys that end a whole answer."""
    if version in LATER:
        return {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
    return {"kv_transfer_params": None}


def wants_usage(body: dict[str, Any], forced: bool) -> tuple[bool, bool]:
    """Whether a stream ends with its usage, and whether every chunk carries it."""
    options = body.get("stream_options") or {}
    return (
        forced or bool(options.get("include_usage")),
        bool(options.get("continuous_usage_stats")),
    )


def event(text: str) -> bytes:
    """Encode a server-sent event."""
    return f"data: {text}\n\n".encode()

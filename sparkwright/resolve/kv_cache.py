"""Layers that keep keys and values, read from a model's own ``config.json``."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sparkwright.catalog.entries import KvLayers

#: Limit of every count, since third parties write these files.
MOST = 1 << 30


def kv_layers(config: Any) -> tuple[KvLayers, ...]:
    """Layers of the KV cache, with their sizes; empty if the configuration lacks a part of them.

    The function reads the keys of transformers' configurations: layer_types or
    full_attention_interval, num_key_value_heads, head_dim, sliding_window, and Gemma's
    global_head_dim with num_global_key_value_heads. Linear-attention layers keep no keys and
    values.
    """
    if not isinstance(config, dict):
        return ()
    text = config.get("text_config")
    data = text if isinstance(text, dict) else config
    total = whole(data, "num_hidden_layers")
    heads = whole(data, "num_key_value_heads") or whole(data, "num_attention_heads")
    width = whole(data, "head_dim")
    if width is None and (hidden := whole(data, "hidden_size")):
        width = hidden // (whole(data, "num_attention_heads") or hidden)
    if not total or not heads or not width:
        return ()
    latent, rope = whole(data, "kv_lora_rank"), whole(data, "qk_rope_head_dim")
    if latent and rope:  # multi-head latent attention keeps one vector per layer, not two per head
        return (KvLayers(layers=total, heads=1, head_dim=(latent + rope + 1) // 2),)
    kinds = _kinds(data, total)
    result = []
    if kinds["full_attention"]:
        result.append(
            KvLayers(
                layers=kinds["full_attention"],
                heads=whole(data, "num_global_key_value_heads") or heads,
                head_dim=whole(data, "global_head_dim") or width,
            )
        )
    if kinds["sliding_attention"]:
        window = whole(data, "sliding_window")
        if window is None:
            return ()
        result.append(
            KvLayers(layers=kinds["sliding_attention"], heads=heads, head_dim=width, window=window)
        )
    return tuple(result)


def _kinds(data: dict[str, Any], total: int) -> Counter[str]:
    """Kind of layer -> number of layers of this kind."""
    listed = data.get("layer_types")
    if isinstance(listed, list):
        return Counter(str(kind) for kind in listed)
    interval = whole(data, "full_attention_interval")
    return Counter({"full_attention": total // interval if interval else total})


def whole(data: Mapping[str, Any], key: str) -> int | None:
    """A number of a configuration; None for a value that no model can have."""
    value = data.get(key)
    counted = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST
    return value if counted else None

"""Memory of llama.cpp: weights and KV cache by the numbers of a GGUF file's header."""

from collections.abc import Mapping

from sparkwright.catalog import ArgumentValue, Model
from sparkwright.engines.llamacpp.arguments import DATA

#: GiB for the compute buffer and CUDA's own.
OVERHEAD_GIB = 1.0
KV_BYTES: dict[str, float] = DATA["kv_bytes"]


def kv_bytes(
    model: Model, arguments: Mapping[str, ArgumentValue | None], tokens: int
) -> float | None:
    """Bytes of a sequence's keys and values; None where the geometry of the cache is not known."""
    widths = [
        KV_BYTES.get(str(arguments.get(f"cache_type_{part}") or "f16")) for part in ("k", "v")
    ]
    if not model.kv or None in widths:
        return None
    width = sum(filter(None, widths)) / 2
    return width * sum(
        layer.layers * 2 * layer.heads * layer.head_dim * min(tokens, layer.window or tokens)
        for layer in model.kv
    )

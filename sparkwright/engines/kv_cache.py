"""Size of a KV cache with one type of keys and values."""

from collections.abc import Mapping

from sparkwright.catalog import ArgumentValue, Model


def kv_bytes(
    widths: Mapping[str, float],
    model: Model,
    arguments: Mapping[str, ArgumentValue | None],
    tokens: int,
) -> float | None:
    """Bytes of a sequence's keys and values; None if the geometry of the cache is not known.

    Args:
        widths: value of ``kv_cache_dtype`` -> bytes of one number.
    """
    width = widths.get(str(arguments.get("kv_cache_dtype") or "auto").lower())
    if not model.kv or width is None:
        return None
    return float(width) * 2 * sum(layer.numbers(tokens) for layer in model.kv)

"""Facts about a model in the header of its GGUF file, as far as serving depends on these facts."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sparkwright.catalog.entries import KvLayers
from sparkwright.catalog.gguf import Gguf
from sparkwright.resolve import kv_cache, model_facts
from sparkwright.resolve.gguf import Header, fault
from sparkwright.text.shipped_yaml import beside

_DATA: dict[str, dict[Any, Any]] = beside(__file__, "gguf.yaml")
#: More blocks than any model has.
_MOST_LAYERS = 1 << 10
_SAMPLING = {"temperature": "temp", "top_p": "top_p", "top_k": "top_k"}


def facts_of_headers(
    headers: Sequence[Header],
    *,
    file: str,
    projector: tuple[str | None, int],
    marks: Collection[str],
    license: object = None,
) -> tuple[model_facts.ModelFacts, tuple[KvLayers, ...]]:
    """Facts, and layers that keep keys and values.

    Args:
        headers: headers of all parts of the file, the first part's first.
        file: path of the first part.
        projector: path and size of the file for image input; None and 0 without this file.
        marks: texts to search for in the chat template.
        license: the hub's information on the license.

    Raises:
        Unusable: the file is not a model, or its values contradict each other.
    """
    values = headers[0].values
    name, kind = values.get("general.architecture"), values.get("general.type", "model")
    if kind != "model" or name in (None, "clip"):
        raise fault("it is not a model, but an adapter, a projector or an importance matrix")
    own = {key.removeprefix(f"{name}."): value for key, value in values.items()}
    layers = kv_cache.whole(own, "block_count") or 0
    if not 0 < layers <= _MOST_LAYERS:
        raise fault("its header lacks a valid number of blocks")
    heads = max(_by_layer(own, "attention.head_count", layers), default=0)
    kv_heads, windows = _kv_heads(own, heads, layers), _windows(own, str(name), layers)
    lengths = _lengths(own, heads)
    file_type: Any = values.get("general.file_type")
    data = {
        **_sizes(headers, layers), "context": kv_cache.whole(own, "context_length"),
        "file": file, "projector": projector[0], "projector_bytes": projector[1],
        "architecture": name,
        "quantization": _DATA["file_types"].get(file_type & 1023 if _counts(file_type) else None),
        "pooling": _DATA["pooling"].get(own.get("pooling_type")),
    }  # fmt: skip
    try:
        gguf = Gguf.model_validate(data)
    except ValidationError as error:
        keys = ", ".join(str(item["loc"][0]) for item in error.errors())
        raise fault(f"its header has invalid values ({keys})") from None
    sampling = {key: values.get(f"general.sampling.{given}") for key, given in _SAMPLING.items()}
    facts = model_facts.facts_of(
        {"model_type": name, "max_position_embeddings": gguf.context}, sampling,
        {"chat_template": values.get("tokenizer.chat_template")}, marks=marks, license=license,
    )  # fmt: skip
    update = {
        "gguf": gguf, "quantization": gguf.quantization, "vision": gguf.projector is not None,
        "hybrid": 0 in kv_heads,
    }  # fmt: skip
    return facts.model_copy(update=update), _geometry(own, kv_heads, windows, lengths)


def _by_layer(values: Mapping[str, Any], key: str, layers: int) -> list[int]:
    """A number for every block: from a single value for all blocks, or from a list; empty if
    missing.
    """
    given = values.get(key, ())
    result = [given] * layers if not isinstance(given, tuple) else list(given)
    if len(result) not in (0, layers) or not all(_counts(item) for item in result):
        raise fault("a list in its header does not match its number of blocks")
    return result


def _counts(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 20


def _kv_heads(values: Mapping[str, Any], heads: int, layers: int) -> list[int]:
    """Number of key-value heads of each block; 0 in blocks that keep a state instead, or use
    another block's keys.
    """
    result = _by_layer(values, "attention.head_count_kv", layers) or [heads] * layers
    interval = kv_cache.whole(values, "full_attention_interval") or 1
    shared = kv_cache.whole(values, "attention.shared_kv_layers") or 0
    return [
        count if (number + 1) % interval == 0 and number < layers - shared else 0
        for number, count in enumerate(result)
    ]


def _windows(values: Mapping[str, Any], name: str, layers: int) -> list[int]:
    """The sliding window of each block; 0 in blocks that keep the whole context."""
    window = kv_cache.whole(values, "attention.sliding_window") or 0
    pattern = values.get("attention.sliding_window_pattern", _DATA["periods"].get(name, 1))
    if isinstance(pattern, tuple) and pattern:
        return [window * bool(pattern[number % len(pattern)]) for number in range(layers)]
    period = pattern if _counts(pattern) else 1
    return [window * (period == 0 or number % period < period - 1) for number in range(layers)]


def _lengths(values: Mapping[str, Any], heads: int) -> tuple[int, int, int, int]:
    """Widths of a key head and a value head; then both widths in blocks with a sliding window."""
    usual = (kv_cache.whole(values, "embedding_length") or 0) // heads if heads else 0
    key = kv_cache.whole(values, "attention.key_length") or usual
    # Multi-head latent attention keeps one vector, which contains the values.
    latent = kv_cache.whole(values, "attention.key_length_mla")
    value = 0 if latent else kv_cache.whole(values, "attention.value_length") or usual
    return (
        key, value,
        kv_cache.whole(values, "attention.key_length_swa") or key,
        kv_cache.whole(values, "attention.value_length_swa") or value,
    )  # fmt: skip


def _geometry(
    values: Mapping[str, Any], kv_heads: list[int], windows: list[int], lengths: Sequence[int]
) -> tuple[KvLayers, ...]:
    if "pooling_type" in values and not values.get("attention.causal", True):
        return ()  # an encoder keeps no keys and values
    kinds = Counter(zip(kv_heads, windows, strict=False))
    result = []
    for (heads, window), layers in kinds.items():
        key, value = lengths[2:] if window else lengths[:2]
        if heads and key:
            width, kept = (key + value + 1) // 2, window or None
            result.append(KvLayers(layers=layers, heads=heads, head_dim=width, window=kept))
    return tuple(result)


def _sizes(headers: Sequence[Header], layers: int) -> dict[str, Any]:
    """Bytes of each block, of experts, and of tensors outside all blocks."""
    blocks, experts, other = [0] * layers, 0, 0
    for header in headers:
        for name, (_, length) in header.tensors.items():
            block = re.match(r"blk\.(\d{1,4})\.", name, re.ASCII)
            if block and int(block[1]) < layers:
                blocks[int(block[1])] += length
                experts += length if "_exps." in name else 0
            else:
                other += length
    return {"layer_bytes": blocks, "expert_bytes": experts, "other_bytes": other}

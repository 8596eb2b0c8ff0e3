"""GGUF files of tests, written by the format's description and not by the code under test."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

#: A dense model of 4 blocks with 2 heads of keys and values of 64 numbers each.
MODEL: dict[str, Any] = {
    "general.architecture": "qwen3", "general.file_type": 15, "qwen3.block_count": 4,
    "qwen3.context_length": 32768, "qwen3.embedding_length": 256, "qwen3.attention.head_count": 4,
    "qwen3.attention.head_count_kv": 2, "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "tokenizer.chat_template": "{% if tools %}<tool_call>{% endif %}",
}  # fmt: skip
TENSORS: dict[str, Sequence[int]] = {
    "token_embd.weight": (256, 8),
    **{f"blk.{number}.ffn_up.weight": (256, 16) for number in range(4)},
}


def text(value: str | bytes, order: str = "<") -> bytes:
    """Encode a text: its length, then its bytes."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(f"{order}Q", len(data)) + data


def value(item: Any, order: str = "<") -> bytes:
    """Encode a value: its type, then its bytes. Bytes are already encoded and stay unchanged."""
    if isinstance(item, bytes):
        return item
    if isinstance(item, bool):
        return struct.pack(f"{order}I?", 7, item)
    if isinstance(item, int):
        return struct.pack(f"{order}II", 4, item)
    if isinstance(item, float):
        return struct.pack(f"{order}If", 6, item)
    if isinstance(item, str):
        return struct.pack(f"{order}I", 8) + text(item, order)
    kind = struct.unpack(f"{order}I", value(item[0], order)[:4])[0]
    data = b"".join(value(each, order)[4:] for each in item)
    return struct.pack(f"{order}IIQ", 9, kind, len(item)) + data


def gguf(
    values: Mapping[str, Any] = MODEL,
    tensors: Mapping[str, Sequence[int]] = TENSORS,
    *,
    version: int = 3,
    order: str = "<",
    more: bytes = b"",
    cut: bool = False,
) -> bytes:
    """A file whose tensors have one byte for each number, aligned at 32.

    Args:
        more: further entries, in encoded form.
        cut: whether to leave out the tensors' data.
    """
    head = b"GGUF" + struct.pack(f"{order}IQQ", version, len(tensors), len(values) + bool(more))
    for key, item in values.items():
        head += text(key, order) + value(item, order)
    head, offset = head + more, 0
    for name, shape in tensors.items():
        head += text(name, order) + struct.pack(f"{order}I{len(shape)}Q", len(shape), *shape)
        head += struct.pack(f"{order}IQ", 24, offset)
        numbers = 1
        for length in shape:
            numbers *= length
        offset += -(-numbers // 32) * 32
    return head + b"\0" * (-len(head) % 32 + (0 if cut else offset))

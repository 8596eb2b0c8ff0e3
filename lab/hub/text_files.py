"""The small files that go with weights: tokenizer, generation settings, templates, README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

GIT_ATTRIBUTES = b"""\
*.safetensors filter=lfs diff=lfs merge=lfs -text
tokenizer.json filter=lfs diff=lfs merge=lfs -text
"""

CHAT_TEMPLATE = b"""\
{#- Fake: the plain ChatML form, without tools and images. -#}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}
"""


def as_json(content: object) -> bytes:
    """Return content as a JSON file."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def readme(repository: str, base: str, note: str) -> bytes:
    """Return the card of a miniature repository, which says that it is a fake."""
    return f"""\
---
license: apache-2.0
base_model: {base}
tags:
- fake
---
# {repository}: a fake

This is **not** the model of this name. It is a fake made for a lab: the real file layout,
tensor names and configuration, with few rows per tensor and random data. It can be fetched,
checked and "loaded" by the lab's serving fake, and can say nothing sensible.

{note}
""".encode()


def byte_tokenizer(
    special_tokens: Mapping[str, int], *, first: int = 0, words: Sequence[str] = ()
) -> bytes:
    """Return a valid tokenizer.json: one token per byte, and special tokens with their ids.

    `first` is the id of the first byte's token. `words` have the ids after the bytes'; no text
    is cut into them, but a model can answer with them. A blank in front of one is part of it.
    """
    symbols = [*_byte_symbols(), *(word.replace(" ", _byte_symbols()[32]) for word in words)]
    added = [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token, number in special_tokens.items()
    ]
    return as_json(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": False,
                "use_regex": True,
            },
            "post_processor": None,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": False,
                "use_regex": True,
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": {symbol: number for number, symbol in enumerate(symbols, first)},
                "merges": [],
            },
        }
    )


def tokenizer_config(
    context: int,
    *,
    kind: str = "Qwen2Tokenizer",
    bos: str | None = None,
    eos: str = "<|im_end|>",
    pad: str = "<|endoftext|>",
    unknown: str | None = None,
) -> bytes:
    """Return tokenizer_config.json for the tokenizer above; without more, that of Qwen."""
    return as_json(
        {
            "tokenizer_class": kind,
            "model_max_length": context,
            "bos_token": bos,
            "eos_token": eos,
            "pad_token": pad,
            "unk_token": unknown,
            "add_prefix_space": False,
            "clean_up_tokenization_spaces": False,
        }
    )


def _byte_symbols() -> list[str]:
    """Return the printable character that byte-level BPE writes for each of the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    symbols = {byte: chr(byte) for byte in plain}
    symbols |= {byte: chr(256 + number) for number, byte in enumerate(others)}
    return [symbols[byte] for byte in range(256)]

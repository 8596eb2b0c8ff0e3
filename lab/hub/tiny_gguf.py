"""The lab's Qwen3 body (`tiny_qwen3`) as GGUF files: a repository of several quantisations.

    lab/tiny-qwen3-GGUF
        tiny-qwen3-Q8_0.gguf                          one file
        F16/tiny-qwen3-F16-0000N-of-00002.gguf        two files, in a folder, like large models
        mmproj-F16.gguf                               not a model: header of an image projector

    lab/tiny-qwen3-broken-GGUF a tensor is missing, which only the engine detects

The answers are the same as for safetensors: "This tiny model has but one word word word ...".
"""

import itertools
import struct
from collections.abc import Iterator
from functools import cache, partial

from . import tiny_qwen3 as body
from .gguf_writer import FILE_TYPES, Metadata, Weights, gguf, split
from .miniature import SMALL_FILES, Files, Miniature, Revision

REPOSITORY, BROKEN = "lab/tiny-qwen3-GGUF", "lab/tiny-qwen3-broken-GGUF"
MISSING = "blk.1.ffn_down.weight"

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>",
            "</tool_call>", "<|mask|>")  # fmt: skip
#: Number of each token type in the format.
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5
_NAMES = {
    "model.embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.down_proj": "ffn_down", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "self_attn.k_norm": "attn_k_norm", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_proj": "attn_k", "self_attn.q_proj": "attn_q", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
}  # fmt: skip


def metadata(kind: str) -> Metadata:
    """Metadata of the body as llama.cpp's converter writes them, and its tokenizer."""
    tokens = [*_bytes(), *(word.replace(" ", "Ġ") for word in body.WORDS), *_SPECIAL]
    types = [_NORMAL] * (256 + len(body.WORDS)) + [_CONTROL] * 3 + [_USER_DEFINED] * 4 + [_CONTROL]
    rest = range(len(tokens), body.VOCABULARY)
    end = tokens.index("<|im_end|>")
    template = SMALL_FILES / "tiny-qwen3/chat_template.jinja"
    return {
        "general.architecture": "qwen3",
        "general.type": "model",
        "general.name": "Tiny Qwen3",
        "general.size_label": "0.1M",
        "qwen3.block_count": body.BODY_LAYERS,
        "qwen3.context_length": body.CONTEXT,
        "qwen3.embedding_length": body.HIDDEN,
        "qwen3.feed_forward_length": body.WIDTH,
        "qwen3.attention.head_count": body.HEADS,
        "qwen3.attention.head_count_kv": body.KEY_HEADS,
        "qwen3.attention.key_length": body.HEAD_WIDTH,
        "qwen3.attention.value_length": body.HEAD_WIDTH,
        "qwen3.attention.layer_norm_rms_epsilon": 1e-6,
        "qwen3.rope.freq_base": 1000000.0,
        "general.quantization_version": 2,
        "general.file_type": FILE_TYPES[kind],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": [*tokens, *(f"[PAD{number}]" for number in rest)],
        "tokenizer.ggml.token_type": [*types, *(_UNUSED for _ in rest)],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.eos_token_id": end,
        "tokenizer.ggml.padding_token_id": tokens.index("<|endoftext|>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": template.read_text(encoding="utf-8"),
    }


@cache
def tensors() -> tuple[Weights, ...]:
    """The body's tensors by the names of GGUF."""
    return tuple(
        Weights(_name(tensor.name), tensor.shape, _numbers(tensor.data))
        for tensor in body.body_tensors()
    )


def _name(name: str) -> str:
    layer, stem = "", name.removesuffix(".weight")
    if stem.startswith("model.layers."):
        _, _, number, stem = stem.split(".", 3)
        layer = f"blk.{number}."
    return f"{layer}{_NAMES[stem]}.weight"


def _numbers(data: bytes) -> list[float]:
    """The numbers of a BF16 tensor."""
    whole = b"".join(bytes(2) + data[start : start + 2] for start in range(0, len(data), 2))
    return list(struct.unpack(f"<{len(data) // 2}f", whole))


def _bytes() -> list[str]:
    """A character for each byte, as the tokenizers of GPT-2 and Qwen write them."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = itertools.count(256)
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


def _projector() -> Iterator[bytes]:
    keys: Metadata = {"general.architecture": "clip", "general.type": "mmproj",
            "general.file_type": FILE_TYPES["F16"], "clip.has_vision_encoder": True}  # fmt: skip
    return gguf(keys, [Weights("mm.0.bias", (32,), [0.0] * 32)], "F16")


def _part(number: int) -> Iterator[bytes]:
    return split(metadata("F16"), tensors(), "F16", 2)[number]


def _files(_size: int) -> Files:
    return {
        "tiny-qwen3-Q8_0.gguf": lambda: gguf(metadata("Q8_0"), tensors(), "Q8_0"),
        "F16/tiny-qwen3-F16-00001-of-00002.gguf": partial(_part, 0),
        "F16/tiny-qwen3-F16-00002-of-00002.gguf": partial(_part, 1),
        "mmproj-F16.gguf": _projector,
    }


def _broken(_size: int) -> Files:
    present = [tensor for tensor in tensors() if tensor.name != MISSING]
    return {"tiny-qwen3-Q8_0.gguf": lambda: gguf(metadata("Q8_0"), present, "Q8_0")}


_DATE = "2026-10-01T08:00:00.000Z"
MINIATURES = (
    Miniature(REPOSITORY, size=0, revisions=(Revision("Made", _DATE, _files),)),
    Miniature(BROKEN, size=0, revisions=(Revision("Made", _DATE, _broken),)),
)

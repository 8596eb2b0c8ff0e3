"""The fake of Qwen/Qwen3-8B-FP8: what a user serves by its repository's name alone.

The configuration, the generation settings and the layout are those of the real one: block-wise FP8
with an inverse scale beside each weight, and the chat template within tokenizer_config.json. Few
rows per tensor, and random data.
"""

from __future__ import annotations

from functools import partial

from .miniature import Files, Miniature, Revision
from .weights import Tensor, bf16, fit, index, named, safetensors, shard

REPOSITORY = "Qwen/Qwen3-8B-FP8"
LAYERS, HIDDEN, WIDTH, HEADS, KEY_HEADS, HEAD_WIDTH = 36, 4096, 12_288, 32, 8, 128
VOCABULARY, CONTEXT, BLOCK = 151_936, 40_960, 128


def _linear(name: str, rows: int, columns: int) -> list[Tensor]:
    blocks = -(-rows // BLOCK), -(-columns // BLOCK)
    return [
        Tensor(f"{name}.weight", "F8_E4M3", (rows, columns), seed=name),
        bf16(f"{name}.weight_scale_inv", *blocks),
    ]


def tensors() -> list[Tensor]:
    """All tensors at their real shapes."""
    result = [bf16("model.embed_tokens.weight", VOCABULARY, HIDDEN, filler=True)]
    for number in range(LAYERS):
        name = f"model.layers.{number}"
        attention, feed_forward = f"{name}.self_attn", f"{name}.mlp"
        result += [
            bf16(f"{name}.input_layernorm.weight", HIDDEN),
            *_linear(f"{attention}.q_proj", HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.k_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.v_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.o_proj", HIDDEN, HEADS * HEAD_WIDTH),
            bf16(f"{attention}.q_norm.weight", HEAD_WIDTH),
            bf16(f"{attention}.k_norm.weight", HEAD_WIDTH),
            *_linear(f"{feed_forward}.gate_proj", WIDTH, HIDDEN),
            *_linear(f"{feed_forward}.up_proj", WIDTH, HIDDEN),
            *_linear(f"{feed_forward}.down_proj", HIDDEN, WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", HIDDEN),
        ]
    return [
        *result,
        bf16("model.norm.weight", HIDDEN),
        bf16("lm_head.weight", VOCABULARY, HIDDEN, filler=True),
    ]


def _files(size: int) -> Files:
    parts = named(shard(fit(tensors(), size), 2))
    files: Files = {name: partial(safetensors, part) for name, part in parts.items()}
    return files | {"model.safetensors.index.json": index(parts)}


MINIATURE = Miniature(
    REPOSITORY, 4 << 20, (Revision("Upload checkpoint", "2025-07-26T03:49:38.000Z", _files),)
)

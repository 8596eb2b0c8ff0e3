"""The fake of Qwen/Qwen3-8B-FP8, a model that users serve by its repository's name alone.

The configuration, the generation settings and the layout are as in the real model: block-wise FP8
with an inverse scale beside each weight, and the chat template within tokenizer_config.json. Each
tensor has few rows, of random data.
"""

from collections.abc import Iterable, Iterator

from .miniature import Files, Miniature, Revision, weight_files
from .nvfp4 import Linear
from .weights import Tensor, bf16, fit, named, shard

REPOSITORY = "Qwen/Qwen3-8B-FP8"
LAYERS, HIDDEN, WIDTH, HEADS, KEY_HEADS, HEAD_WIDTH = 36, 4096, 12_288, 32, 8, 128
VOCABULARY, CONTEXT, BLOCK = 151_936, 40_960, 128


def fp8(name: str, rows: int, columns: int) -> list[Tensor]:
    """Return a linear layer in blocks of FP8: weight and inverse scales."""
    blocks = -(-rows // BLOCK), -(-columns // BLOCK)
    return [
        Tensor(f"{name}.weight", "F8_E4M3", (rows, columns), seed=name),
        bf16(f"{name}.weight_scale_inv", *blocks),
    ]


def attention(name: str, linear: Linear, hidden: int, key_heads: int) -> Iterator[Tensor]:
    """Yield the tensors of a layer's first norm and of its attention."""
    own = f"{name}.self_attn"
    yield bf16(f"{name}.input_layernorm.weight", hidden)
    for part, heads in (("q", HEADS), ("k", key_heads), ("v", key_heads)):
        yield from linear(f"{own}.{part}_proj", heads * HEAD_WIDTH, hidden)
    yield from linear(f"{own}.o_proj", hidden, HEADS * HEAD_WIDTH)
    for part in ("q", "k"):
        yield bf16(f"{own}.{part}_norm.weight", HEAD_WIDTH)


def feed_forward(name: str, linear: Linear, hidden: int, width: int) -> Iterator[Tensor]:
    """Yield the tensors of an MLP, or of an expert."""
    yield from linear(f"{name}.gate_proj", width, hidden)
    yield from linear(f"{name}.up_proj", width, hidden)
    yield from linear(f"{name}.down_proj", hidden, width)


def model(layers: Iterable[Tensor], hidden: int) -> Iterator[Tensor]:
    """Yield the embeddings, these layers, the last norm and the head."""
    yield bf16("model.embed_tokens.weight", VOCABULARY, hidden, filler=True)
    yield from layers
    yield bf16("model.norm.weight", hidden)
    yield bf16("lm_head.weight", VOCABULARY, hidden, filler=True)


def tensors(linear: Linear = fp8) -> list[Tensor]:
    """All tensors at their real shapes, with linear layers of this form."""

    def layers() -> Iterator[Tensor]:
        for number in range(LAYERS):
            name = f"model.layers.{number}"
            yield from attention(name, linear, HIDDEN, KEY_HEADS)
            yield from feed_forward(f"{name}.mlp", linear, HIDDEN, WIDTH)
            yield bf16(f"{name}.post_attention_layernorm.weight", HIDDEN)

    return list(model(layers(), HIDDEN))


def _files(size: int) -> Files:
    return weight_files(named(shard(fit(tensors(), size), 2)))


MINIATURE = Miniature(
    REPOSITORY, 4 << 20, (Revision("Upload checkpoint", "2025-07-26T03:49:38.000Z", _files),)
)

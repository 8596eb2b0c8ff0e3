"""The lab's own pair for a real engine: a Qwen3 body and a DFlash drafter that really compute.

    lab/tiny-qwen3           two layers, hidden size 64, a tokenizer of bytes and a few words
    lab/tiny-qwen3-dflash    one layer over the body's first layer
    lab/tiny-qwen3-lora      an adapter of the body, with which every token leads to the last word

Every projection holds random numbers, except the last projections of attention and MLP, which are
zero: the layers are computed and add nothing. So the next token depends only on the last token, by
    the embeddings and the head: each word leads to the next, every other token leads to the first
    word, and the last word leads to itself. The drafter's mask token leads to the last word. An
    answer is

    This tiny model has but one word word word word ...

where no draft is right until the last word is reached, and all drafts are right from there on: both
counters of speculation rise. An engine that misreads embeddings, head or a zero answers with other
words. The random numbers are computed, but do not influence the answer.
"""

import math
import random
import struct
from collections.abc import Sequence
from functools import partial

from .miniature import Files, Miniature, Revision
from .weights import Tensor, safetensors

BODY, DRAFTER = "lab/tiny-qwen3", "lab/tiny-qwen3-dflash"
ADAPTER = "lab/tiny-qwen3-lora"
WORDS = ("This", " tiny", " model", " has", " but", " one", " word")

CONTEXT = 2048
HIDDEN, WIDTH, HEADS, KEY_HEADS, HEAD_WIDTH = 64, 128, 2, 1, 32
BODY_LAYERS, DRAFTER_LAYERS = 2, 1
TARGET_LAYERS = [0]

FIRST_WORD = 256
#: The last of the eight special tokens, which follow the words.
MASK = FIRST_WORD + len(WORDS) + 7
VOCABULARY = 320

#: A logit so far above all others that a correct engine chooses its token at any temperature.
CERTAIN = 4.0


def bfloat16(numbers: Sequence[float]) -> bytes:
    """The upper halves of the numbers as 32-bit floats: the format of BF16."""
    return b"".join(struct.pack("<f", number)[2:] for number in numbers)


def _tensor(name: str, shape: tuple[int, ...], numbers: Sequence[float]) -> Tensor:
    return Tensor(name, "BF16", shape, seed=name, data=bfloat16(numbers))


def _zeros(name: str, *shape: int) -> Tensor:
    return _tensor(name, shape, [0.0] * math.prod(shape))


def _ones(name: str, *shape: int) -> Tensor:
    return _tensor(name, shape, [1.0] * math.prod(shape))


def random_tensor(name: str, rows: int, columns: int) -> Tensor:
    """Random numbers of the size of an untrained projection's numbers."""
    generator = random.Random(name)
    spread = columns**-0.5
    return _tensor(
        name, (rows, columns), [generator.gauss(0, spread) for _ in range(rows * columns)]
    )


def _rows(name: str, hot: dict[int, int], value: float, *, others: int | None) -> Tensor:
    """A row per token with `value` in the column of `hot`, or in `others`, or all zeros."""
    numbers: list[float] = []
    for token in range(VOCABULARY):
        column = hot.get(token, others)
        numbers += [value if column == number else 0.0 for number in range(HIDDEN)]
    return _tensor(name, (VOCABULARY, HIDDEN), numbers)


def embeddings() -> list[Tensor]:
    """Embeddings and head: column n + 1 stands for word n, and column 0 for all other tokens."""
    arguments = {FIRST_WORD + number: number + 1 for number in range(len(WORDS))}
    successors = {token: column - 1 for token, column in arguments.items()}
    last = len(WORDS)
    head = _rows("lm_head.weight", successors, CERTAIN, others=None)
    loop = bytearray(head.data)
    position = ((FIRST_WORD + last - 1) * HIDDEN + last) * 2
    loop[position : position + 2] = bfloat16([CERTAIN])  # the last word also follows itself
    return [
        _rows("model.embed_tokens.weight", {**arguments, MASK: last}, 1.0, others=0),
        Tensor(head.name, head.dtype, head.shape, head.seed, data=bytes(loop)),
    ]


def _layers(count: int, prefix: str) -> list[Tensor]:
    tensors: list[Tensor] = []
    for number in range(count):
        name = f"{prefix}layers.{number}"
        tensors += [
            _ones(f"{name}.input_layernorm.weight", HIDDEN),
            _zeros(f"{name}.mlp.down_proj.weight", HIDDEN, WIDTH),
            random_tensor(f"{name}.mlp.gate_proj.weight", WIDTH, HIDDEN),
            random_tensor(f"{name}.mlp.up_proj.weight", WIDTH, HIDDEN),
            _ones(f"{name}.post_attention_layernorm.weight", HIDDEN),
            _ones(f"{name}.self_attn.k_norm.weight", HEAD_WIDTH),
            random_tensor(f"{name}.self_attn.k_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            _zeros(f"{name}.self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_WIDTH),
            _ones(f"{name}.self_attn.q_norm.weight", HEAD_WIDTH),
            random_tensor(f"{name}.self_attn.q_proj.weight", HEADS * HEAD_WIDTH, HIDDEN),
            random_tensor(f"{name}.self_attn.v_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
        ]
    return tensors


def body_tensors() -> list[Tensor]:
    """All tensors of the body."""
    return [*embeddings(), *_layers(BODY_LAYERS, "model."), _ones("model.norm.weight", HIDDEN)]


def drafter_tensors() -> list[Tensor]:
    """All tensors of the drafter, which takes embeddings and head from its body."""
    return [
        random_tensor("fc.weight", HIDDEN, len(TARGET_LAYERS) * HIDDEN),
        _ones("hidden_norm.weight", HIDDEN),
        *_layers(DRAFTER_LAYERS, ""),
        _ones("norm.weight", HIDDEN),
    ]


def _activations(column: int) -> list[float]:
    """Numbers that reach the first layer's down_proj after a token of this column."""
    name = "model.layers.0.mlp"
    gate, up = (
        struct.unpack(
            f"<{WIDTH * HIDDEN}f",
            b"".join(b"\0\0" + tensor.data[at : at + 2] for at in range(0, len(tensor.data), 2)),
        )
        for tensor in (
            random_tensor(f"{name}.{part}_proj.weight", WIDTH, HIDDEN) for part in ("gate", "up")
        )
    )
    # The norm multiplies a hidden state with a single 1 by the root of its width.
    scale = math.sqrt(HIDDEN)
    pairs = zip(gate[column::HIDDEN], up[column::HIDDEN], strict=True)
    return [g * scale / (1 + math.exp(-g * scale)) * u * scale for g, u in pairs]


def adapter_tensors() -> list[Tensor]:
    """A matrix that detects the columns of a prompt and of the last word, and a matrix that answers
    with the last word's column.
    """
    last = len(WORDS)
    every, own = _activations(0), _activations(last)
    sizes = [sum(number**2 for number in each) for each in (every, own)]
    row = [a / sizes[0] + b / sizes[1] for a, b in zip(every, own, strict=True)]
    name = "base_model.model.model.layers.0.mlp.down_proj"
    return [
        _tensor(f"{name}.lora_A.weight", (1, WIDTH), row),
        _tensor(f"{name}.lora_B.weight", (HIDDEN, 1), [20.0 * (n == last) for n in range(HIDDEN)]),
    ]


def _adapter(_size: int) -> Files:
    return {"adapter_model.safetensors": partial(safetensors, adapter_tensors())}


def _body(_size: int) -> Files:
    return {"model.safetensors": partial(safetensors, body_tensors())}


def _drafter(_size: int) -> Files:
    return {"model.safetensors": partial(safetensors, drafter_tensors())}


MINIATURES = (
    Miniature(BODY, size=0, revisions=(Revision("Made", "2026-07-01T08:00:00.000Z", _body),)),
    Miniature(ADAPTER, size=0, revisions=(Revision("Made", "2026-07-01T08:00:00.000Z", _adapter),)),
    Miniature(DRAFTER, size=0, revisions=(Revision("Made", "2026-07-01T08:00:00.000Z", _drafter),)),
)

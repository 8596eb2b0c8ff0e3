"""The fakes of unsloth's GGUF files of Qwen3.5, which the catalog's recipes for RTX 50 serve.

The metadata equal the real architecture's metadata as far as a plan reads them: blocks, context,
heads and their lengths, every fourth block with full attention. Shapes are as in the family's other
bodies here; the 9B model has the shapes of the 4B model, with a greater width. Each block has one
short tensor of zeros, in F32 for any file type.
"""

from functools import partial

from .gguf_writer import FILE_TYPES, Metadata, Weights, gguf
from .miniature import SMALL_FILES, Files, Miniature, Revision
from .qwen27b_bodies import MODEL as LARGE
from .qwen35_hybrid import FAMILY, HEAD_WIDTH, Hybrid
from .stock_bodies import SMALL_MODEL

MIDDLE = Hybrid(layers=32, hidden=4096, heads=16, key_heads=4, linear_value_heads=32)


def metadata(name: str, model: Hybrid, kind: str) -> Metadata:
    """Metadata of a body as llama.cpp's converter writes them, without its tokens."""
    template = SMALL_FILES / FAMILY / "chat_template.jinja"
    own = {
        "block_count": model.layers, "context_length": 262_144, "embedding_length": model.hidden,
        "attention.head_count": model.heads, "attention.head_count_kv": model.key_heads,
        "attention.key_length": HEAD_WIDTH, "attention.value_length": HEAD_WIDTH,
        "full_attention_interval": 4,
    }  # fmt: skip
    return {
        "general.architecture": "qwen35", "general.type": "model", "general.name": f"Fake {name}",
        "general.file_type": FILE_TYPES[kind],
        **{f"qwen35.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.chat_template": template.read_text(encoding="utf-8"),
    }  # fmt: skip


def _files(name: str, model: Hybrid, kinds: tuple[str, ...], _size: int) -> Files:
    blocks = [f"blk.{number}.ffn_down" for number in range(model.layers)]
    names = ["token_embd", *blocks, "output_norm", "output"]
    tensors = [Weights(f"{each}.weight", (32,), [0.0] * 32) for each in names]
    return {
        f"{name}-{kind}.gguf": partial(gguf, metadata(name, model, kind), tensors, "F16")
        for kind in kinds
    }


MINIATURES = tuple(
    Miniature(f"unsloth/{name}-GGUF", 0, (Revision("Upload", date, partial(_files, name, *own)),))
    for name, date, own in (
        ("Qwen3.5-4B", "2026-03-02T12:00:00.000Z", (SMALL_MODEL, ("Q4_K_M",))),
        ("Qwen3.5-9B", "2026-03-02T12:00:00.000Z", (MIDDLE, ("Q4_K_M", "Q6_K"))),
        ("Qwen3.5-27B", "2026-02-25T12:00:00.000Z", (LARGE, ("Q4_K_M",))),
    )
)

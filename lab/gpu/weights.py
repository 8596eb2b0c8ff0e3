"""`python3 -m lab.gpu.weights`: Qwen3-8B's shape in BF16, into the depot's hub. Needs numpy.

As `lab/hub/tiny_qwen3.py`: every projection holds random numbers, but for the last of attention and
MLP, which are zero. All layers are computed at their true size and add nothing, so that the next
token depends on the last one alone, and an answer is "This tiny model has but one word word ...".
The tokenizer is the tiny model's. 16.4 GB, about 20 s on 16 cores.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from lab.gpu.layout import DEPOT_FILES, MODEL
from lab.hub import tiny_qwen3
from lab.hub.miniature import GIT_ATTRIBUTES, SMALL_FILES
from lab.hub.store import Commit, File, Repository, Store, commit_id
from lab.hub.weights import Tensor, bf16, header, index, named, shard

LAYERS, HIDDEN, WIDTH, HEADS, KEY_HEADS, HEAD_WIDTH = 36, 4096, 12_288, 32, 8, 128
VOCABULARY, CONTEXT, SHARDS = 151_936, 40_960, 8
DATE = "2026-11-23T08:00:00.000Z"
#: Random numbers that every projection is filled with, over and over.
_BLOCK = 1 << 24


def tensors() -> list[Tensor]:
    """All tensors of the model; their data are made while they are written."""
    result = [bf16("model.embed_tokens.weight", VOCABULARY, HIDDEN)]
    for number in range(LAYERS):
        name = f"model.layers.{number}"
        attention, feed_forward = f"{name}.self_attn", f"{name}.mlp"
        result += [
            bf16(f"{name}.input_layernorm.weight", HIDDEN),
            bf16(f"{attention}.q_proj.weight", HEADS * HEAD_WIDTH, HIDDEN),
            bf16(f"{attention}.k_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            bf16(f"{attention}.v_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            bf16(f"{attention}.o_proj.weight", HIDDEN, HEADS * HEAD_WIDTH),
            bf16(f"{attention}.q_norm.weight", HEAD_WIDTH),
            bf16(f"{attention}.k_norm.weight", HEAD_WIDTH),
            bf16(f"{feed_forward}.gate_proj.weight", WIDTH, HIDDEN),
            bf16(f"{feed_forward}.up_proj.weight", WIDTH, HIDDEN),
            bf16(f"{feed_forward}.down_proj.weight", HIDDEN, WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", HIDDEN),
        ]
    return [*result, bf16("model.norm.weight", HIDDEN), bf16("lm_head.weight", VOCABULARY, HIDDEN)]


def data(tensor: Tensor, noise: bytes) -> Iterator[bytes]:
    """The tensor's bytes, in pieces."""
    name = tensor.name
    if "norm" in name:
        yield tiny_qwen3.bfloat16([1.0]) * (tensor.size // 2)
    elif name in ("model.embed_tokens.weight", "lm_head.weight"):
        yield from _vocabulary(tensor)
    elif "o_proj" in name or "down_proj" in name:
        yield bytes(tensor.size)
    else:
        for start in range(0, tensor.size, len(noise)):
            yield noise[: tensor.size - start]


def _vocabulary(tensor: Tensor) -> Iterator[bytes]:
    """The tiny model's embeddings or head, over more columns and more tokens."""
    small = next(item for item in tiny_qwen3.embeddings() if item.name == tensor.name)
    width, columns = tiny_qwen3.HIDDEN * 2, tensor.row_bytes
    rows = [small.data[at : at + width] for at in range(0, len(small.data), width)]
    # A token that no word is encoded as is a row like that of the first byte.
    others = VOCABULARY - len(rows)
    for row in rows:
        yield row + bytes(columns - width)
    for start in range(0, others, 1024):
        yield (rows[0] + bytes(columns - width)) * min(1024, others - start)


def _shard(work: tuple[Path, str, list[Tensor]]) -> File:
    directory, name, part = work
    numpy: Any = importlib.import_module("numpy")  # of the GPU machine's Python
    numbers = numpy.random.default_rng(8).standard_normal(_BLOCK, dtype=numpy.float32) * 0.02
    noise = (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()

    def pieces() -> Iterator[bytes]:
        head = header(part)
        yield len(head).to_bytes(8, "little") + head
        for tensor in part:
            yield from data(tensor, noise)

    return Store(directory).add(name, pieces(), lfs=True)


def configuration() -> bytes:
    """The model's config.json: Qwen3-8B's, with the tiny model's token ids."""
    text = json.loads((SMALL_FILES / "Qwen3-8B-FP8/config.json").read_text())
    del text["quantization_config"], text["bos_token_id"]
    own = json.loads((SMALL_FILES / "tiny-qwen3/config.json").read_text())
    return json.dumps({**text, "eos_token_id": own["eos_token_id"]}, indent=2).encode()


def make(directory: Path) -> Repository:
    """Write the repository into a hub's directory, unless it is there."""
    store = Store(directory)
    if made := store.load(MODEL):
        return made
    parts = named(shard(tensors(), SHARDS))
    with ProcessPoolExecutor(SHARDS) as pool:
        files = list(pool.map(_shard, [(directory, name, part) for name, part in parts.items()]))
    small = {path.name: path.read_bytes() for path in (SMALL_FILES / "tiny-qwen3").iterdir()}
    small |= {"config.json": configuration(), ".gitattributes": GIT_ATTRIBUTES}
    small["model.safetensors.index.json"] = index(parts)
    small["tokenizer_config.json"] = small["tokenizer_config.json"].replace(
        b'"model_max_length": 2048', f'"model_max_length": {CONTEXT}'.encode()
    )
    files += [store.add(name, iter([content]), lfs=name == "tokenizer.json")
              for name, content in small.items()]  # fmt: skip
    files.sort(key=lambda file: file.path)
    identity = commit_id(MODEL, "", "Made", DATE, files)
    commit = Commit(identity, "Made", DATE, tuple(files))
    repository = Repository(MODEL, (commit,), {"main": identity})
    store.save(repository)
    return repository


if __name__ == "__main__":
    started = time.monotonic()
    made = make(Path(sys.argv[1]) if sys.argv[1:] else DEPOT_FILES / "hub")
    size = sum(file.size for file in made.commits[-1].files)
    print(f"{made.id}: {size} bytes in {time.monotonic() - started:.1f} s")

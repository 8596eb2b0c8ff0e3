"""`python3 -m lab.gpu.weights`: models for a real GPU, into the depot's hub. Needs numpy.

    lab/qwen3-8b         Qwen3-8B's shape in BF16, 16.4 GB
    lab/qwen3-8b-fp8     the same in blocks of FP8, 8.8 GB
    lab/qwen3-moe        six layers of Qwen3-30B-A3B's shape in BF16: 128 experts, 8.7 GB
    lab/tiny-qwen3, lab/tiny-qwen3-dflash    the lab's tiny pair
    lab/tiny-noise       the tiny body's shape with random weights: its answers are nonsense

As in `lab/hub/tiny_qwen3.py`: every projection holds random numbers, except the last projections of
attention and MLP, which are zero. All layers are computed at their true size and add nothing, so
that the next token depends only on the last token, and an answer is "This tiny model has but one
word word ...". The tokenizer comes from the tiny model. The weights have 34 GB and take about 20 s
on 16 cores.
"""

import importlib
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lab.gpu.layout import DEPOT_FILES, MODEL
from lab.hub import qwen3_fp8, tiny_qwen3
from lab.hub.miniature import GIT_ATTRIBUTES, SMALL_FILES, Files, Miniature, Revision, build
from lab.hub.store import Commit, File, Repository, Store, commit_id
from lab.hub.weights import Tensor, bf16, header, index, named, safetensors, shard

SHARDS = 8
MOE_LAYERS, MOE_HIDDEN, MOE_WIDTH, EXPERTS, MOE_KEY_HEADS = 6, 2048, 768, 128, 4
DATE = "2026-11-23T08:00:00.000Z"
#: Number of random numbers that are repeated to fill every projection.
_BLOCK = 1 << 24
#: The bytes 0x7f and 0xff are NaN in FP8.
_NUMBERS = bytes(byte & 0xF7 for byte in range(256))


def plain(name: str, rows: int, columns: int) -> list[Tensor]:
    """Return a linear layer in BF16."""
    return [bf16(f"{name}.weight", rows, columns)]


def expert_layers() -> Iterator[Tensor]:
    """Yield the layers of the mixture of experts; their data are made while they are written."""
    for number in range(MOE_LAYERS):
        name = f"model.layers.{number}"
        yield from qwen3_fp8.attention(name, plain, MOE_HIDDEN, MOE_KEY_HEADS)
        yield bf16(f"{name}.mlp.gate.weight", EXPERTS, MOE_HIDDEN)
        yield bf16(f"{name}.post_attention_layernorm.weight", MOE_HIDDEN)
        for expert in range(EXPERTS):
            own = f"{name}.mlp.experts.{expert}"
            yield from qwen3_fp8.feed_forward(own, plain, MOE_HIDDEN, MOE_WIDTH)


def data(tensor: Tensor, noise: bytes) -> Iterator[bytes]:
    """The tensor's bytes, in pieces."""
    name = tensor.name
    if "norm" in name:
        yield tiny_qwen3.bfloat16([1.0]) * (tensor.size // 2)
    elif name in ("model.embed_tokens.weight", "lm_head.weight"):
        yield from _vocabulary(tensor)
    elif name.endswith("_scale_inv"):
        yield tiny_qwen3.bfloat16([2**-10]) * (tensor.size // 2)
    elif "o_proj" in name or "down_proj" in name:
        yield bytes(tensor.size)
    else:
        if tensor.dtype == "F8_E4M3":
            noise = noise.translate(_NUMBERS)
        for start in range(0, tensor.size, len(noise)):
            yield noise[: tensor.size - start]


def _vocabulary(tensor: Tensor) -> Iterator[bytes]:
    """The tiny model's embeddings or head, over more columns and more tokens."""
    small = next(item for item in tiny_qwen3.embeddings() if item.name == tensor.name)
    width, columns = tiny_qwen3.HIDDEN * 2, tensor.row_bytes
    rows = [small.data[at : at + width] for at in range(0, len(small.data), width)]
    # A token that encodes no word has a row like the first byte's row.
    others = qwen3_fp8.VOCABULARY - len(rows)
    for row in rows:
        yield row + bytes(columns - width)
    for start in range(0, others, 1024):
        yield (rows[0] + bytes(columns - width)) * min(1024, others - start)


def _shard(work: tuple[Path, str, list[Tensor]]) -> File:
    directory, name, part = work
    numpy: Any = importlib.import_module("numpy")  # the controller lacks numpy
    numbers = numpy.random.default_rng(8).standard_normal(_BLOCK, dtype=numpy.float32) * 0.02
    noise = (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()

    def pieces() -> Iterator[bytes]:
        head = header(part)
        yield len(head).to_bytes(8, "little") + head
        for tensor in part:
            yield from data(tensor, noise)

    return Store(directory).add(name, pieces(), lfs=True)


def _configuration(**changed: Any) -> bytes:
    """Qwen3-8B's config.json with the tiny model's token ids."""
    text = json.loads((SMALL_FILES / "Qwen3-8B-FP8/config.json").read_text())
    own = json.loads((SMALL_FILES / "tiny-qwen3/config.json").read_text())
    text = {**text, "eos_token_id": own["eos_token_id"], **changed}
    del text["bos_token_id"]
    return json.dumps({key: value for key, value in text.items() if value != {}}, indent=2).encode()


_MOE = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": MOE_HIDDEN,
    "num_hidden_layers": MOE_LAYERS, "num_key_value_heads": MOE_KEY_HEADS, "num_experts": EXPERTS,
    "num_experts_per_tok": 8, "moe_intermediate_size": MOE_WIDTH, "intermediate_size": 6144,
    "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "output_router_logits": False, "router_aux_loss_coef": 0.001, "quantization_config": {},
}  # fmt: skip


def make(directory: Path, model: str, tensors: list[Tensor], **configuration: Any) -> Repository:
    """Write a repository of eight shards into a hub's directory, unless it exists."""
    store = Store(directory)
    if made := store.load(model):
        return made
    parts = named(shard(tensors, SHARDS))
    with ProcessPoolExecutor(SHARDS) as pool:
        files = list(pool.map(_shard, [(directory, name, part) for name, part in parts.items()]))
    small = {path.name: path.read_bytes() for path in (SMALL_FILES / "tiny-qwen3").iterdir()}
    small |= {"config.json": _configuration(**configuration), ".gitattributes": GIT_ATTRIBUTES}
    small["model.safetensors.index.json"] = index(parts)
    small["tokenizer_config.json"] = small["tokenizer_config.json"].replace(
        b'"model_max_length": 2048', f'"model_max_length": {qwen3_fp8.CONTEXT}'.encode()
    )
    files += [store.add(name, iter([content]), lfs=name == "tokenizer.json")
              for name, content in small.items()]  # fmt: skip
    files.sort(key=lambda file: file.path)
    identity = commit_id(model, "", "Made", DATE, files)
    repository = Repository(model, (Commit(identity, "Made", DATE, tuple(files)),),
                            {"main": identity})  # fmt: skip
    store.save(repository)
    return repository


def _noise(_size: int) -> Files:
    def random(tensor: Tensor) -> Tensor:
        return tiny_qwen3.random_tensor(tensor.name, *tensor.shape)

    tensors = [random(tensor) if len(tensor.shape) > 1 else tensor
               for tensor in tiny_qwen3.body_tensors()]  # fmt: skip
    return {"model.safetensors": partial(safetensors, tensors)}


NOISE = Miniature("lab/tiny-noise", size=0, family="tiny-qwen3",
                  revisions=(Revision("Made", DATE, _noise),))  # fmt: skip


def make_all(directory: Path) -> None:
    """Write all repositories."""
    for miniature in (*tiny_qwen3.MINIATURES, NOISE):
        build(miniature, Store(directory), 1.0, "")
    experts = list(qwen3_fp8.model(expert_layers(), MOE_HIDDEN))
    make(directory, "lab/qwen3-moe", experts, **_MOE)
    make(directory, "lab/qwen3-8b-fp8", qwen3_fp8.tensors())
    make(directory, MODEL, qwen3_fp8.tensors(plain), quantization_config={})


if __name__ == "__main__":
    started = time.monotonic()
    make_all(Path(sys.argv[1]) if sys.argv[1:] else DEPOT_FILES / "hub")
    print(f"{time.monotonic() - started:.1f} s")

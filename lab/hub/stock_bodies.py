"""The fakes of stock vLLM's models: NVIDIA's and Qwen's Qwen3.6-35B-A3B, and Qwen3.5-4B.

vLLM's recipes give formats (ModelOpt's NVFP4, FP8, BF16), context, vision and the MTP head. Names
and shapes are as in the same family's other bodies here. The fakes choose attention in NVFP4 and
FP8, three shards and one shard, and the dates.
"""

from functools import partial

from . import qwen3_fp8, qwen36_body
from .miniature import Files, Miniature, Revision, weight_files
from .nvfp4 import Linear, modelopt, unquantized
from .qwen35_hybrid import FAMILY, TEXT, VOCABULARY, Hybrid
from .weights import Tensor, bf16, fit, named, shard

NVIDIA = "nvidia/Qwen3.6-35B-A3B-NVFP4"
BLOCKWISE = "Qwen/Qwen3.6-35B-A3B-FP8"
SMALL = "Qwen/Qwen3.5-4B"
SMALL_MODEL = Hybrid(layers=32, hidden=2560, heads=16, key_heads=4, linear_value_heads=32)
SMALL_WIDTH = 9216


def _mtp(model: Hybrid) -> list[Tensor]:
    """Return the MTP head without its feed-forward layer, since no code of the lab reads it."""
    return [
        bf16("mtp.fc.weight", model.hidden, 2 * model.hidden),
        bf16("mtp.layers.0.input_layernorm.weight", model.hidden),
        bf16("mtp.layers.0.post_attention_layernorm.weight", model.hidden),
        *model.full_attention("mtp.layers.0.self_attn", unquantized),
        bf16("mtp.norm.weight", model.hidden),
    ]


def _small() -> list[Tensor]:
    """Return all tensors of the small model at their real shapes."""
    model, tensors = SMALL_MODEL, []
    for number in range(model.layers):
        name = f"{TEXT}layers.{number}"
        tensors += [
            bf16(f"{name}.input_layernorm.weight", model.hidden),
            *model.attention(number, full=unquantized, gdn=unquantized),
            *qwen3_fp8.feed_forward(f"{name}.mlp", unquantized, model.hidden, SMALL_WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", model.hidden),
        ]
    return [
        bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, model.hidden, filler=True),
        *tensors,
        bf16(f"{TEXT}norm.weight", model.hidden),
        *model.vision(),
        *_mtp(model),
    ]


def _large_files(size: int, linear: Linear) -> Files:
    tensors = [*qwen36_body.tensors(linear), *_mtp(qwen36_body.MODEL)]
    return weight_files(named(shard(fit(tensors, size), 3)))


def _small_files(size: int) -> Files:
    return weight_files({"model.safetensors": fit(_small(), size)})


MINIATURES = tuple(
    Miniature(repository, 6 << 20, (Revision("Upload checkpoint", date, files),), family=FAMILY)
    for repository, date, files in (
        (NVIDIA, "2026-05-28T12:00:00.000Z", partial(_large_files, linear=modelopt)),
        (BLOCKWISE, "2026-04-17T12:00:00.000Z", partial(_large_files, linear=qwen3_fp8.fp8)),
        (SMALL, "2026-02-27T12:00:00.000Z", _small_files),
    )
)

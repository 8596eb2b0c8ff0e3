"""The fakes of what stock vLLM serves on RTX 50: NVIDIA's Qwen3.6-35B-A3B, and Qwen3.5-4B.

vLLM's recipes give formats (ModelOpt's NVFP4, BF16), context, vision and the MTP head. Names and
shapes are those of the same family's other bodies here. Chosen: attention in NVFP4 too, three
shards and one, and the dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from . import qwen36_body
from .miniature import Files, Miniature, Revision
from .nvfp4 import hf_quant_config, modelopt, modelopt_config, unquantized
from .qwen35_hybrid import TEXT, VOCABULARY, Hybrid, small_files
from .text_files import as_json
from .weights import Tensor, bf16, fit, index, named, safetensors, shard

NVIDIA = "nvidia/Qwen3.6-35B-A3B-NVFP4"
SMALL = "Qwen/Qwen3.5-4B"
SMALL_MODEL = Hybrid(layers=32, hidden=2560, heads=16, key_heads=4, linear_value_heads=32)
SMALL_WIDTH = 9216
_MTP: dict[str, Any] = {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}
_KEPT = ["lm_head", "model.language_model.embed_tokens", "model.visual*", "*linear_attn*", "mtp*"]


def _mtp(model: Hybrid) -> list[Tensor]:
    """Return the MTP head without its feed-forward layer, which nothing here looks at."""
    return [
        bf16("mtp.fc.weight", model.hidden, 2 * model.hidden),
        bf16("mtp.layers.0.input_layernorm.weight", model.hidden),
        bf16("mtp.layers.0.post_attention_layernorm.weight", model.hidden),
        *model.full_attention("mtp.layers.0.self_attn", unquantized),
        bf16("mtp.norm.weight", model.hidden),
    ]


def _small() -> list[Tensor]:
    """Return all tensors of the small one at their real shapes."""
    model, tensors = SMALL_MODEL, []
    for number in range(model.layers):
        name = f"{TEXT}layers.{number}"
        tensors += [
            bf16(f"{name}.input_layernorm.weight", model.hidden),
            *model.attention(number, full=unquantized, gdn=unquantized),
            bf16(f"{name}.mlp.gate_proj.weight", SMALL_WIDTH, model.hidden),
            bf16(f"{name}.mlp.up_proj.weight", SMALL_WIDTH, model.hidden),
            bf16(f"{name}.mlp.down_proj.weight", model.hidden, SMALL_WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", model.hidden),
        ]
    return [
        bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, model.hidden, filler=True),
        *tensors,
        bf16(f"{TEXT}norm.weight", model.hidden),
        *model.vision(),
        *_mtp(model),
    ]


def _nvidia_files(size: int) -> Files:
    model = qwen36_body.MODEL
    feed_forward = {**qwen36_body.FEED_FORWARD, **_MTP}
    config = model.config(
        "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", feed_forward, modelopt_config(_KEPT)
    )
    files = small_files(NVIDIA, "Qwen/Qwen3.6-35B-A3B", "modelopt NVFP4.", config)
    files["hf_quant_config.json"] = as_json(hf_quant_config(_KEPT))
    tensors = [*qwen36_body.tensors(modelopt), *_mtp(model)]
    return files | _weights(named(shard(fit(tensors, size), 3)))


def _small_files(size: int) -> Files:
    feed_forward = {"intermediate_size": SMALL_WIDTH, **_MTP}
    config = SMALL_MODEL.config(
        "Qwen3_5ForConditionalGeneration", "qwen3_5", feed_forward, quantization=None
    )
    files = small_files(SMALL, "Qwen/Qwen3.5-4B-Base", "BF16.", config)
    return files | _weights({"model.safetensors": fit(_small(), size)})


def _weights(parts: dict[str, Sequence[Tensor]]) -> Files:
    files: Files = {name: partial(safetensors, part) for name, part in parts.items()}
    return files | ({"model.safetensors.index.json": index(parts)} if len(parts) > 1 else {})


MINIATURES = (
    Miniature(
        NVIDIA, 6 << 20, (Revision("Upload checkpoint", "2026-05-28T12:00:00.000Z", _nvidia_files),)
    ),
    Miniature(
        SMALL, 6 << 20, (Revision("Upload checkpoint", "2026-02-27T12:00:00.000Z", _small_files),)
    ),
)

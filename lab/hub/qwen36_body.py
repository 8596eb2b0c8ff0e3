"""The stand-in of AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4, with the faults of its older revisions.

Dimensions, quantization, shards and the three layouts are the card's ("Model Architecture",
"Quantization Details", "Files", "What changed in v2", "Vision fix"). Names and shapes of the
tensors are those of Qwen3_5MoeForConditionalGeneration. Only EXPERTS of the 256 experts per layer
are written, so that the headers stay small; the configuration still says 256.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from .miniature import Files, Miniature, Revision
from .text_files import (
    CHAT_TEMPLATE,
    GIT_ATTRIBUTES,
    as_json,
    byte_tokenizer,
    readme,
    tokenizer_config,
)
from .weights import Tensor, fit, header, index, renamed, safetensors, shard, shard_name

REPOSITORY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
BASE = "tvall43/Qwen3.6-35B-A3B-heretic"
SHARDS = 9
EXPERTS = 2

LAYERS = 40
HIDDEN = 2048
EXPERT_WIDTH = 512
VOCABULARY = 248_320
CONTEXT = 262_144
HEADS, KEY_HEADS, HEAD_WIDTH = 16, 2, 256
LINEAR_KEY_HEADS, LINEAR_VALUE_HEADS, LINEAR_WIDTH = 16, 32, 128
VISION_BLOCKS, VISION_HIDDEN, VISION_WIDTH, VISION_POSITIONS = 27, 1152, 4304, 2304
NVFP4_BLOCK = 16

SPECIAL_TOKENS = {
    "<|endoftext|>": 248_044,
    "<|im_start|>": 248_045,
    "<|im_end|>": 248_046,
    "<|vision_start|>": 248_053,
    "<|vision_end|>": 248_054,
    "<|image_pad|>": 248_056,
    "<|video_pad|>": 248_057,
    "<tool_call>": 248_058,
    "</tool_call>": 248_059,
    "<think>": 248_068,
    "</think>": 248_069,
}

# What each revision calls the two parts of the model.
TEXT = "model.language_model."
TEXT_V1 = "model."
VISION = "model.visual."
VISION_V2 = "model.language_model.visual."


def _plain(name: str, *shape: int, filler: bool = False) -> Tensor:
    return Tensor(name, "BF16", shape, seed=name, filler=filler)


def _nvfp4(name: str, outputs: int, inputs: int) -> list[Tensor]:
    """Return the four tensors of a quantized linear layer (two 4-bit values per byte)."""
    return [
        Tensor(f"{name}.weight_packed", "U8", (outputs, inputs // 2), seed=f"{name}.packed"),
        Tensor(
            f"{name}.weight_scale", "F8_E4M3", (outputs, inputs // NVFP4_BLOCK), f"{name}.scale"
        ),
        Tensor(f"{name}.weight_global_scale", "F32", (1,), seed=f"{name}.weight_global_scale"),
        Tensor(f"{name}.input_global_scale", "F32", (1,), seed=f"{name}.input_global_scale"),
    ]


def _gated_mlp(name: str) -> list[Tensor]:
    return [
        *_nvfp4(f"{name}.gate_proj", EXPERT_WIDTH, HIDDEN),
        *_nvfp4(f"{name}.up_proj", EXPERT_WIDTH, HIDDEN),
        *_nvfp4(f"{name}.down_proj", HIDDEN, EXPERT_WIDTH),
    ]


def _full_attention(name: str) -> list[Tensor]:
    width = HEADS * HEAD_WIDTH
    return [
        # Twice the width: the query and its output gate.
        *_nvfp4(f"{name}.q_proj", 2 * width, HIDDEN),
        *_nvfp4(f"{name}.k_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
        *_nvfp4(f"{name}.v_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
        *_nvfp4(f"{name}.o_proj", HIDDEN, width),
        _plain(f"{name}.q_norm.weight", HEAD_WIDTH),
        _plain(f"{name}.k_norm.weight", HEAD_WIDTH),
    ]


def _linear_attention(name: str) -> list[Tensor]:
    keys, values = LINEAR_KEY_HEADS * LINEAR_WIDTH, LINEAR_VALUE_HEADS * LINEAR_WIDTH
    return [
        _plain(f"{name}.A_log", LINEAR_VALUE_HEADS),
        _plain(f"{name}.conv1d.weight", 2 * keys + values, 1, 4),
        _plain(f"{name}.dt_bias", LINEAR_VALUE_HEADS),
        _plain(f"{name}.in_proj_a.weight", LINEAR_VALUE_HEADS, HIDDEN),
        _plain(f"{name}.in_proj_b.weight", LINEAR_VALUE_HEADS, HIDDEN),
        _plain(f"{name}.in_proj_qkv.weight", 2 * keys + values, HIDDEN),
        _plain(f"{name}.in_proj_z.weight", values, HIDDEN),
        _plain(f"{name}.norm.weight", LINEAR_WIDTH),
        _plain(f"{name}.out_proj.weight", HIDDEN, values),
    ]


def _layer(number: int) -> list[Tensor]:
    name = f"{TEXT}layers.{number}"
    attention = (
        _full_attention(f"{name}.self_attn")
        if _is_full_attention(number)
        else _linear_attention(f"{name}.linear_attn")
    )
    experts = [
        tensor for expert in range(EXPERTS) for tensor in _gated_mlp(f"{name}.mlp.experts.{expert}")
    ]
    return [
        _plain(f"{name}.input_layernorm.weight", HIDDEN),
        *attention,
        *experts,
        _plain(f"{name}.mlp.gate.weight", 256, HIDDEN),
        *_gated_mlp(f"{name}.mlp.shared_expert"),
        _plain(f"{name}.mlp.shared_expert_gate.weight", 1, HIDDEN),
        _plain(f"{name}.post_attention_layernorm.weight", HIDDEN),
    ]


def _linear(name: str, outputs: int, *inputs: int) -> list[Tensor]:
    return [_plain(f"{name}.weight", outputs, *inputs), _plain(f"{name}.bias", outputs)]


def _vision() -> list[Tensor]:
    """Return the 333 tensors of the vision tower."""
    tensors = []
    for number in range(VISION_BLOCKS):
        name = f"{VISION}blocks.{number}"
        tensors += [
            *_linear(f"{name}.attn.proj", VISION_HIDDEN, VISION_HIDDEN),
            *_linear(f"{name}.attn.qkv", 3 * VISION_HIDDEN, VISION_HIDDEN),
            *_linear(f"{name}.mlp.linear_fc1", VISION_WIDTH, VISION_HIDDEN),
            *_linear(f"{name}.mlp.linear_fc2", VISION_HIDDEN, VISION_WIDTH),
            *_linear(f"{name}.norm1", VISION_HIDDEN),
            *_linear(f"{name}.norm2", VISION_HIDDEN),
        ]
    merged = 4 * VISION_HIDDEN
    return [
        *tensors,
        *_linear(f"{VISION}merger.linear_fc1", merged, merged),
        *_linear(f"{VISION}merger.linear_fc2", HIDDEN, merged),
        *_linear(f"{VISION}merger.norm", VISION_HIDDEN),
        *_linear(f"{VISION}patch_embed.proj", VISION_HIDDEN, 3, 2, 16, 16),
        _plain(f"{VISION}pos_embed.weight", VISION_POSITIONS, VISION_HIDDEN),
    ]


def _is_full_attention(layer: int) -> bool:
    return layer % 4 == 3


def tensors() -> list[Tensor]:
    """Return all tensors, at their real shapes, under the names of the newest revision."""
    return [
        _plain(f"{TEXT}embed_tokens.weight", VOCABULARY, HIDDEN, filler=True),
        *(tensor for number in range(LAYERS) for tensor in _layer(number)),
        _plain(f"{TEXT}norm.weight", HIDDEN),
        *_vision(),
        _plain("lm_head.weight", VOCABULARY, HIDDEN, filler=True),
    ]


def _text_config() -> dict[str, Any]:
    return {
        "model_type": "qwen3_5_moe_text",
        "dtype": "bfloat16",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "layer_types": [
            "full_attention" if _is_full_attention(number) else "linear_attention"
            for number in range(LAYERS)
        ],
        "full_attention_interval": 4,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "head_dim": HEAD_WIDTH,
        "partial_rotary_factor": 0.25,
        "attn_output_gate": True,
        "linear_conv_kernel_dim": 4,
        "linear_num_key_heads": LINEAR_KEY_HEADS,
        "linear_num_value_heads": LINEAR_VALUE_HEADS,
        "linear_key_head_dim": LINEAR_WIDTH,
        "linear_value_head_dim": LINEAR_WIDTH,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": EXPERT_WIDTH,
        "shared_expert_intermediate_size": EXPERT_WIDTH,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-06,
        "hidden_act": "silu",
        "eos_token_id": SPECIAL_TOKENS["<|endoftext|>"],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
        },
    }


def _quantization_config() -> dict[str, Any]:
    scheme = {
        "num_bits": 4,
        "type": "float",
        "strategy": "tensor_group",
        "group_size": NVFP4_BLOCK,
        "symmetric": True,
        "actorder": None,
        "block_structure": None,
        "observer_kwargs": {},
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {
                "format": "nvfp4-pack-quantized",
                "targets": ["Linear"],
                "weights": {**scheme, "dynamic": False, "observer": "static_minmax"},
                "input_activations": {**scheme, "dynamic": "local", "observer": "static_minmax"},
                "output_activations": None,
            }
        },
        "ignore": [
            "lm_head",
            "re:.*embed_tokens$",
            "re:.*mlp.gate$",
            "re:.*shared_expert_gate$",
            "re:.*visual.*",
            "re:.*linear_attn.*",
        ],
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


def _config() -> bytes:
    return as_json(
        {
            "architectures": ["Qwen3_5MoeForConditionalGeneration"],
            "model_type": "qwen3_5_moe",
            "dtype": "bfloat16",
            "tie_word_embeddings": False,
            "image_token_id": SPECIAL_TOKENS["<|image_pad|>"],
            "video_token_id": SPECIAL_TOKENS["<|video_pad|>"],
            "vision_start_token_id": SPECIAL_TOKENS["<|vision_start|>"],
            "vision_end_token_id": SPECIAL_TOKENS["<|vision_end|>"],
            "text_config": _text_config(),
            "vision_config": {
                "model_type": "qwen3_5_moe",
                "depth": VISION_BLOCKS,
                "hidden_size": VISION_HIDDEN,
                "intermediate_size": VISION_WIDTH,
                "num_heads": 16,
                "num_position_embeddings": VISION_POSITIONS,
                "out_hidden_size": HIDDEN,
                "patch_size": 16,
                "spatial_merge_size": 2,
                "temporal_patch_size": 2,
                "deepstack_visual_indexes": [],
            },
            "quantization_config": _quantization_config(),
        }
    )


def _config_v1() -> bytes:
    """Return the configuration of v1, which went through the text-only loader."""
    return as_json(
        {
            "architectures": ["Qwen3_5MoeForCausalLM"],
            **_text_config(),
            "tie_word_embeddings": False,
            "quantization_config": _quantization_config(),
        }
    )


def _files(config: bytes, parts: list[list[Tensor]], like: list[list[Tensor]], note: str) -> Files:
    """Return a tree; each shard's header is as long as that of the same shard of `like`.

    The vision fix was an edit of names in the header alone: file sizes and data offsets stayed.
    """
    files: Files = {
        ".gitattributes": GIT_ATTRIBUTES,
        "README.md": readme(REPOSITORY, BASE, note),
        "chat_template.jinja": CHAT_TEMPLATE,
        "config.json": config,
        "generation_config.json": as_json(
            {
                "do_sample": True,
                "eos_token_id": [
                    SPECIAL_TOKENS["<|im_end|>"],
                    SPECIAL_TOKENS["<|endoftext|>"],
                ],
                "pad_token_id": SPECIAL_TOKENS["<|endoftext|>"],
                "temperature": 1.0,
                "top_k": 20,
                "top_p": 0.95,
            }
        ),
        "model.safetensors.index.json": index(parts),
        "tokenizer.json": byte_tokenizer(SPECIAL_TOKENS),
        "tokenizer_config.json": tokenizer_config(CONTEXT),
    }
    for number, (part, model) in enumerate(zip(parts, like, strict=True), start=1):
        content = partial(safetensors, part, header_bytes=len(header(model)))
        files[shard_name(number, len(parts))] = content
    return files


def _v1_name(name: str) -> str:
    return TEXT_V1 + name.removeprefix(TEXT) if name.startswith(TEXT) else name


def _v2_name(name: str) -> str:
    return VISION_V2 + name.removeprefix(VISION) if name.startswith(VISION) else name


@cache
def _fitted(size: int) -> list[Tensor]:
    return fit(tensors(), size)


def _v1(size: int) -> Files:
    text = [tensor for tensor in tensors() if not tensor.name.startswith(VISION)]
    # v2 was quantized anew, so no byte of v1's data is in it.
    old = [
        Tensor(_v1_name(part.name), part.dtype, part.shape, f"v1:{part.seed}", part.filler)
        for part in text
    ]
    parts = shard(fit(old, size), SHARDS)
    return _files(_config_v1(), parts, parts, "v1: keys remapped to `model.layers.*`.")


def _v2(size: int) -> Files:
    parts = shard(renamed(_fitted(size), _v2_name), SHARDS)
    return _files(_config(), parts, parts, "v2: the vision tower is mis-nested.")


def _v3(size: int, note: str) -> Files:
    parts = shard(_fitted(size), SHARDS)
    like = [renamed(part, _v2_name) for part in parts]
    return _files(_config(), parts, like, note)


MINIATURE = Miniature(
    REPOSITORY,
    size=24 << 20,
    revisions=(
        Revision("Upload NVFP4 checkpoint", "2026-04-17T18:20:00.000Z", _v1),
        Revision("v2: restore the multimodal layout", "2026-04-19T15:05:00.000Z", _v2),
        Revision(
            "Vision fix: model.visual.*",
            "2026-06-18T21:30:00.000Z",
            partial(_v3, note="The vision tower is at `model.visual.*`."),
        ),
        Revision(
            "Update README.md",
            "2026-06-19T16:45:00.000Z",
            partial(_v3, note="The vision tower is at `model.visual.*`; validated again."),
        ),
    ),
)

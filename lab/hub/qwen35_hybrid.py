"""What the Qwen3.5 and Qwen3.6 bodies have in common: GDN and full attention, vision, tokens.

Every fourth layer has full attention with an output gate, the others a Gated DeltaNet (GDN).
Names and shapes of the tensors are those of Qwen3_5ForConditionalGeneration and of its sibling
with experts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .miniature import Files
from .nvfp4 import Linear
from .text_files import (
    CHAT_TEMPLATE,
    GIT_ATTRIBUTES,
    as_json,
    byte_tokenizer,
    readme,
    tokenizer_config,
)
from .weights import Tensor, bf16

VOCABULARY = 248_320
CONTEXT = 262_144
HEAD_WIDTH = 256
LINEAR_KEY_HEADS, LINEAR_WIDTH = 16, 128
VISION_BLOCKS, VISION_HIDDEN, VISION_WIDTH, VISION_POSITIONS = 27, 1152, 4304, 2304

TEXT = "model.language_model."
VISION = "model.visual."

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


@dataclass(frozen=True)
class Hybrid:
    """In what the bodies differ, apart from their feed-forward layers."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    linear_value_heads: int

    def full_attention(self, name: str, linear: Linear) -> list[Tensor]:
        """Return the tensors of a layer's full attention."""
        width = self.heads * HEAD_WIDTH
        return [
            # Twice the width: the query and its output gate.
            *linear(f"{name}.q_proj", 2 * width, self.hidden),
            *linear(f"{name}.k_proj", self.key_heads * HEAD_WIDTH, self.hidden),
            *linear(f"{name}.v_proj", self.key_heads * HEAD_WIDTH, self.hidden),
            *linear(f"{name}.o_proj", self.hidden, width),
            bf16(f"{name}.q_norm.weight", HEAD_WIDTH),
            bf16(f"{name}.k_norm.weight", HEAD_WIDTH),
        ]

    def linear_attention(self, name: str, linear: Linear) -> list[Tensor]:
        """Return the tensors of a layer's GDN; `linear` makes its three large projections."""
        heads = self.linear_value_heads
        keys, values = LINEAR_KEY_HEADS * LINEAR_WIDTH, heads * LINEAR_WIDTH
        return [
            bf16(f"{name}.A_log", heads),
            bf16(f"{name}.conv1d.weight", 2 * keys + values, 1, 4),
            bf16(f"{name}.dt_bias", heads),
            bf16(f"{name}.in_proj_a.weight", heads, self.hidden),
            bf16(f"{name}.in_proj_b.weight", heads, self.hidden),
            *linear(f"{name}.in_proj_qkv", 2 * keys + values, self.hidden),
            *linear(f"{name}.in_proj_z", values, self.hidden),
            bf16(f"{name}.norm.weight", LINEAR_WIDTH),
            *linear(f"{name}.out_proj", self.hidden, values),
        ]

    def attention(self, number: int, full: Linear, gdn: Linear) -> list[Tensor]:
        """Return the tensors of layer `number`'s attention, of whichever kind it is."""
        name = f"{TEXT}layers.{number}"
        if is_full_attention(number):
            return self.full_attention(f"{name}.self_attn", full)
        return self.linear_attention(f"{name}.linear_attn", gdn)

    def vision(self) -> list[Tensor]:
        """Return the 333 tensors of the vision tower."""
        tensors = []
        for number in range(VISION_BLOCKS):
            name = f"{VISION}blocks.{number}"
            tensors += [
                *_biased(f"{name}.attn.proj", VISION_HIDDEN, VISION_HIDDEN),
                *_biased(f"{name}.attn.qkv", 3 * VISION_HIDDEN, VISION_HIDDEN),
                *_biased(f"{name}.mlp.linear_fc1", VISION_WIDTH, VISION_HIDDEN),
                *_biased(f"{name}.mlp.linear_fc2", VISION_HIDDEN, VISION_WIDTH),
                *_biased(f"{name}.norm1", VISION_HIDDEN),
                *_biased(f"{name}.norm2", VISION_HIDDEN),
            ]
        merged = 4 * VISION_HIDDEN
        return [
            *tensors,
            *_biased(f"{VISION}merger.linear_fc1", merged, merged),
            *_biased(f"{VISION}merger.linear_fc2", self.hidden, merged),
            *_biased(f"{VISION}merger.norm", VISION_HIDDEN),
            *_biased(f"{VISION}patch_embed.proj", VISION_HIDDEN, 3, 2, 16, 16),
            bf16(f"{VISION}pos_embed.weight", VISION_POSITIONS, VISION_HIDDEN),
        ]

    def text_config(self, model_type: str, feed_forward: dict[str, Any]) -> dict[str, Any]:
        """Return the text part of config.json, with the feed-forward layers' own keys."""
        return {
            "model_type": f"{model_type}_text",
            "dtype": "bfloat16",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "layer_types": [
                "full_attention" if is_full_attention(number) else "linear_attention"
                for number in range(self.layers)
            ],
            "full_attention_interval": 4,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "head_dim": HEAD_WIDTH,
            "partial_rotary_factor": 0.25,
            "attn_output_gate": True,
            "linear_conv_kernel_dim": 4,
            "linear_num_key_heads": LINEAR_KEY_HEADS,
            "linear_num_value_heads": self.linear_value_heads,
            "linear_key_head_dim": LINEAR_WIDTH,
            "linear_value_head_dim": LINEAR_WIDTH,
            **feed_forward,
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

    def config(
        self,
        architecture: str,
        model_type: str,
        feed_forward: dict[str, Any],
        quantization: dict[str, Any] | None,
    ) -> bytes:
        """Return config.json of the whole model, with its vision tower."""
        return as_json(
            {
                "architectures": [architecture],
                "model_type": model_type,
                "dtype": "bfloat16",
                "tie_word_embeddings": False,
                "image_token_id": SPECIAL_TOKENS["<|image_pad|>"],
                "video_token_id": SPECIAL_TOKENS["<|video_pad|>"],
                "vision_start_token_id": SPECIAL_TOKENS["<|vision_start|>"],
                "vision_end_token_id": SPECIAL_TOKENS["<|vision_end|>"],
                "text_config": self.text_config(model_type, feed_forward),
                "vision_config": {
                    "model_type": model_type,
                    "depth": VISION_BLOCKS,
                    "hidden_size": VISION_HIDDEN,
                    "intermediate_size": VISION_WIDTH,
                    "num_heads": 16,
                    "num_position_embeddings": VISION_POSITIONS,
                    "out_hidden_size": self.hidden,
                    "patch_size": 16,
                    "spatial_merge_size": 2,
                    "temporal_patch_size": 2,
                    "deepstack_visual_indexes": [],
                },
                **({"quantization_config": quantization} if quantization else {}),
            }
        )


def is_full_attention(layer: int) -> bool:
    """Whether a layer has full attention rather than a GDN."""
    return layer % 4 == 3


def small_files(repository: str, base: str, note: str, config: bytes) -> Files:
    """Return the files around the weights, and the configuration."""
    return {
        ".gitattributes": GIT_ATTRIBUTES,
        "README.md": readme(repository, base, note),
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
        "tokenizer.json": byte_tokenizer(SPECIAL_TOKENS),
        "tokenizer_config.json": tokenizer_config(CONTEXT),
    }


def _biased(name: str, outputs: int, *inputs: int) -> list[Tensor]:
    return [bf16(f"{name}.weight", outputs, *inputs), bf16(f"{name}.bias", outputs)]

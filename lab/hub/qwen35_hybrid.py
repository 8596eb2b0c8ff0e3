"""Tensors that the Qwen3.5 and Qwen3.6 bodies share: GDN and full attention, vision.

Every fourth layer has full attention with an output gate; the other layers have a Gated DeltaNet
(GDN). Names and shapes of the tensors are as in Qwen3_5ForConditionalGeneration and its sibling
with experts.
"""

from dataclasses import dataclass

from .nvfp4 import Linear
from .weights import Tensor, bf16

VOCABULARY = 248_320
HEAD_WIDTH = 256
LINEAR_KEY_HEADS, LINEAR_WIDTH = 16, 128
VISION_BLOCKS, VISION_HIDDEN, VISION_WIDTH, VISION_POSITIONS = 27, 1152, 4304, 2304

#: Folder of the small files that these bodies share.
FAMILY = "qwen3.5"
TEXT = "model.language_model."
VISION = "model.visual."


@dataclass(frozen=True)
class Hybrid:
    """Differences of the bodies, apart from their feed-forward layers."""

    layers: int
    hidden: int
    heads: int
    key_heads: int
    linear_value_heads: int

    def full_attention(self, name: str, linear: Linear) -> list[Tensor]:
        """Return the tensors of a layer's full attention."""
        width = self.heads * HEAD_WIDTH
        return [
            # The tensor has twice the width, for the query and its output gate.
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
        """Return the tensors of layer `number`'s attention, of either kind."""
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


def is_full_attention(layer: int) -> bool:
    """Return whether a layer has full attention rather than a GDN."""
    return layer % 4 == 3


def _biased(name: str, outputs: int, *inputs: int) -> list[Tensor]:
    return [bf16(f"{name}.weight", outputs, *inputs), bf16(f"{name}.bias", outputs)]

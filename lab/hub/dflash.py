"""What the DFlash drafters have in common: a few Qwen3 layers over a body's hidden states.

`fc` takes the hidden states after some of the body's layers together. A drafter has neither
embeddings nor a head of its own: it uses those of its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .miniature import Files
from .text_files import GIT_ATTRIBUTES, as_json, readme
from .weights import Tensor, bf16, fit, safetensors

SLIDING, FULL = "sliding_attention", "full_attention"
WINDOW = 2048
HEAD_WIDTH = 128


@dataclass(frozen=True)
class Drafter:
    """A drafter and the body it is for. extra: keys of config.json that others have not."""

    repository: str
    base: str
    layers: int
    hidden: int
    width: int
    heads: int
    key_heads: int
    target_layers: Sequence[int]
    target_depth: int
    mask_token: int
    vocabulary: int
    rope_theta: int
    extra: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> list[Tensor]:
        """Return all tensors at their full shapes."""
        hidden, width = self.hidden, self.width
        found = [
            bf16("fc.weight", hidden, len(self.target_layers) * hidden, filler=True),
            bf16("hidden_norm.weight", hidden),
        ]
        for number in range(self.layers):
            name = f"layers.{number}"
            found += [
                bf16(f"{name}.input_layernorm.weight", hidden),
                bf16(f"{name}.mlp.down_proj.weight", hidden, width),
                bf16(f"{name}.mlp.gate_proj.weight", width, hidden),
                bf16(f"{name}.mlp.up_proj.weight", width, hidden),
                bf16(f"{name}.post_attention_layernorm.weight", hidden),
                bf16(f"{name}.self_attn.k_norm.weight", HEAD_WIDTH),
                bf16(f"{name}.self_attn.k_proj.weight", self.key_heads * HEAD_WIDTH, hidden),
                bf16(f"{name}.self_attn.o_proj.weight", hidden, self.heads * HEAD_WIDTH),
                bf16(f"{name}.self_attn.q_norm.weight", HEAD_WIDTH),
                bf16(f"{name}.self_attn.q_proj.weight", self.heads * HEAD_WIDTH, hidden),
                bf16(f"{name}.self_attn.v_proj.weight", self.key_heads * HEAD_WIDTH, hidden),
            ]
        return [*found, bf16("norm.weight", hidden)]

    def config(self, kinds: Sequence[str]) -> bytes:
        """Return config.json for layers of these kinds."""
        sliding = SLIDING in kinds
        return as_json(
            {
                "architectures": ["DFlashDraftModel"],
                "model_type": "qwen3",
                "dtype": "bfloat16",
                "block_size": 16,
                "dflash_config": {
                    "mask_token_id": self.mask_token,
                    "target_layer_ids": list(self.target_layers),
                },
                "num_target_layers": self.target_depth,
                "hidden_size": self.hidden,
                "intermediate_size": self.width,
                "num_hidden_layers": self.layers,
                "num_attention_heads": self.heads,
                "num_key_value_heads": self.key_heads,
                "head_dim": HEAD_WIDTH,
                "layer_types": list(kinds),
                "use_sliding_window": sliding,
                "sliding_window": WINDOW if sliding else None,
                "max_position_embeddings": 262_144,
                "vocab_size": self.vocabulary,
                "rms_norm_eps": 1e-06,
                "rope_theta": self.rope_theta,
                "tie_word_embeddings": False,
                **self.extra,
            }
        )

    def files(self, size: int, *, kinds: Sequence[str], note: str, generation: str) -> Files:
        """Return a tree; weights of another `generation` share no byte with these."""
        parts = [
            Tensor(part.name, part.dtype, part.shape, f"{generation}:{part.seed}", part.filler)
            for part in self.tensors()
        ]
        return {
            ".gitattributes": GIT_ATTRIBUTES,
            "README.md": readme(self.repository, self.base, note),
            "config.json": self.config(kinds),
            "model.safetensors": partial(safetensors, fit(parts, size)),
        }

"""Common parts of the DFlash drafters: a few Qwen3 layers over a body's hidden states.

`fc` takes the hidden states after some of the body's layers together. A drafter has no embeddings
and no head: it uses the body's tensors.
"""

from dataclasses import dataclass
from functools import partial

from .miniature import Files
from .weights import Tensor, bf16, fit, safetensors

HEAD_WIDTH = 128


@dataclass(frozen=True)
class Drafter:
    """A drafter; `target_layers` is the number of the body's layers that it reads."""

    repository: str
    layers: int
    hidden: int
    width: int
    heads: int
    key_heads: int
    target_layers: int

    def tensors(self) -> list[Tensor]:
        """Return all tensors at their full shapes."""
        hidden, width = self.hidden, self.width
        result = [
            bf16("fc.weight", hidden, self.target_layers * hidden, filler=True),
            bf16("hidden_norm.weight", hidden),
        ]
        for number in range(self.layers):
            name = f"layers.{number}"
            result += [
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
        return [*result, bf16("norm.weight", hidden)]

    def files(self, size: int, *, generation: str = "first") -> Files:
        """Return weights; weights of another `generation` share no byte with them."""
        parts = [
            Tensor(part.name, part.dtype, part.shape, f"{generation}:{part.seed}", part.filler)
            for part in self.tensors()
        ]
        return {"model.safetensors": partial(safetensors, fit(parts, size))}

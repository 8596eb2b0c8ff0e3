"""The fakes of the bodies of 27B: three of Qwen3.6-27B AEON, DFlash-Qwen3.5-27B, NVIDIA's
body, and Qwen3.8-27B in BF16 and NVFP4.

The cards give: formats; GDN in BF16 in the full modelopt body; 21 GB for XS, 26 GB for the body in
compressed-tensors and about 20 GB for Qwen3.5; for the Qwen3.5 body also 64 layers (48 linear, 16
full), one MTP head, and vision. Shapes are as in Qwen3.5-27B and Qwen3.6-27B, whose shapes are the
same. vLLM's recipe gives Qwen3.8's layers (48 linear, 16 full), vision, MTP head and formats; its
other shapes are taken to be the same.

The fakes choose GDN in NVFP4 for XS and for Qwen3.5 (GDN in BF16 would exceed both sizes);
modelopt's format for Qwen3.5, whose card names AWQ-calibrated NVFP4; vision in all bodies;
attention in NVFP4 in NVIDIA's body (vLLM's recipe: MLP in NVFP4, attention in FP8); and the files:
modelopt's bodies are in shards with the MTP head in a separate file, since it was added after the
export, and the index names every file; the body in compressed-tensors is a single file, as
llmcompressor saves with the newer transformers. Dates are chosen to fit the cards.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .miniature import Files, Miniature, Revision, weight_files
from .nvfp4 import Linear, compressed, modelopt, unquantized
from .qwen3_fp8 import feed_forward
from .qwen35_hybrid import FAMILY, TEXT, VOCABULARY, Hybrid
from .weights import Tensor, bf16, fit, named, shard

MODEL = Hybrid(layers=64, hidden=5120, heads=24, key_heads=4, linear_value_heads=48)
WIDTH = 17_408
SHARDS = 3
MTP_FILE = "model_mtp.safetensors"
SIZE = 6 << 20


@dataclass(frozen=True)
class Body:
    """One repository: quantization of its layers and its GDN, and presence of an MTP head."""

    repository: str
    date: str
    linear: Linear = modelopt
    gdn: Linear = unquantized
    mtp: bool = True

    def tensors(self) -> list[Tensor]:
        """Return all tensors at their real shapes."""
        return [
            bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, MODEL.hidden, filler=True),
            *(tensor for number in range(MODEL.layers) for tensor in self._layer(number)),
            bf16(f"{TEXT}norm.weight", MODEL.hidden),
            *MODEL.vision(),
            bf16("lm_head.weight", VOCABULARY, MODEL.hidden, filler=True),
            *(_mtp() if self.mtp else []),
        ]

    def files(self, size: int) -> Files:
        """Return weights of about `size` bytes."""
        return weight_files(self._parts(fit(self.tensors(), size)))

    def _layer(self, number: int) -> list[Tensor]:
        name = f"{TEXT}layers.{number}"
        return [
            bf16(f"{name}.input_layernorm.weight", MODEL.hidden),
            *MODEL.attention(number, full=self.linear, gdn=self.gdn),
            *feed_forward(f"{name}.mlp", self.linear, MODEL.hidden, WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", MODEL.hidden),
        ]

    def _parts(self, tensors: list[Tensor]) -> dict[str, Sequence[Tensor]]:
        if self.linear is not modelopt:
            return {"model.safetensors": tensors}
        body = [tensor for tensor in tensors if not tensor.name.startswith("mtp.")]
        head = [tensor for tensor in tensors if tensor.name.startswith("mtp.")]
        return {**named(shard(body, SHARDS)), MTP_FILE: head}


def _mtp() -> list[Tensor]:
    """Return the 15 tensors of the MTP head, which stays in BF16."""
    return [
        bf16("mtp.fc.weight", MODEL.hidden, 2 * MODEL.hidden),
        bf16("mtp.layers.0.input_layernorm.weight", MODEL.hidden),
        *feed_forward("mtp.layers.0.mlp", unquantized, MODEL.hidden, WIDTH),
        bf16("mtp.layers.0.post_attention_layernorm.weight", MODEL.hidden),
        *MODEL.full_attention("mtp.layers.0.self_attn", unquantized),
        bf16("mtp.norm.weight", MODEL.hidden),
        bf16("mtp.pre_fc_norm_embedding.weight", MODEL.hidden),
        bf16("mtp.pre_fc_norm_hidden.weight", MODEL.hidden),
    ]


_AEON = "AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored"
BODIES = (
    Body(f"{_AEON}-Multimodal-NVFP4-MTP", "2026-04-27T17:45:00.000Z"),
    Body(f"{_AEON}-Multimodal-NVFP4-MTP-XS", "2026-04-28T03:10:00.000Z", gdn=modelopt),
    Body(f"{_AEON}-NVFP4", "2026-04-25T22:15:00.000Z", linear=compressed, mtp=False),
    Body("AEON-7/DFlash-Qwen3.5-27B-Uncensored-NVFP4", "2026-04-08T19:00:00.000Z", gdn=modelopt),
    Body("Qwen/Qwen3.8-27B", "2026-08-14T12:00:00.000Z", linear=unquantized),
    Body("Inferact/Qwen3.8-27B-NVFP4", "2026-08-15T12:00:00.000Z"),
    Body("RadixArk/Qwen3.8-27B-NVFP4", "2026-08-22T12:00:00.000Z"),
    Body("nvidia/Qwen3.6-27B-NVFP4", "2026-06-01T12:00:00.000Z"),
)

MINIATURES = tuple(
    Miniature(
        body.repository,
        SIZE,
        (Revision("Upload checkpoint", body.date, body.files),),
        family=FAMILY,
    )
    for body in BODIES
)

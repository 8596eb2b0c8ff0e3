"""The fake of AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4, with the faults of its older revisions.

Dimensions, quantization, shards and the three layouts come from the card ("Model Architecture",
"Quantization Details", "Files", "What changed in v2", "Vision fix"). Names and shapes of the
tensors are as in Qwen3_5MoeForConditionalGeneration. Only EXPERTS of the 256 experts per layer are
written, so that the headers stay small; the configuration still has 256.
"""

from functools import cache, partial

from .miniature import Files, Miniature, Revision
from .nvfp4 import Linear, compressed, unquantized
from .qwen3_fp8 import feed_forward
from .qwen35_hybrid import FAMILY, TEXT, VISION, VOCABULARY, Hybrid
from .weights import Tensor, bf16, fit, header, index, named, renamed, safetensors, shard

REPOSITORY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
SHARDS = 9
EXPERTS = 2

MODEL = Hybrid(layers=40, hidden=2048, heads=16, key_heads=2, linear_value_heads=32)
EXPERT_WIDTH = 512

# Names of the model's two parts in earlier revisions.
TEXT_V1 = "model."
VISION_V2 = "model.language_model.visual."


def _layer(number: int, linear: Linear) -> list[Tensor]:
    name = f"{TEXT}layers.{number}"
    mlp = partial(feed_forward, linear=linear, hidden=MODEL.hidden, width=EXPERT_WIDTH)
    experts = [
        tensor for expert in range(EXPERTS) for tensor in mlp(f"{name}.mlp.experts.{expert}")
    ]
    return [
        bf16(f"{name}.input_layernorm.weight", MODEL.hidden),
        *MODEL.attention(number, full=linear, gdn=unquantized),
        *experts,
        bf16(f"{name}.mlp.gate.weight", 256, MODEL.hidden),
        *mlp(f"{name}.mlp.shared_expert"),
        bf16(f"{name}.mlp.shared_expert_gate.weight", 1, MODEL.hidden),
        bf16(f"{name}.post_attention_layernorm.weight", MODEL.hidden),
    ]


def tensors(linear: Linear = compressed) -> list[Tensor]:
    """Return all tensors, at their real shapes, under the names of the newest revision."""
    return [
        bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, MODEL.hidden, filler=True),
        *(tensor for number in range(MODEL.layers) for tensor in _layer(number, linear)),
        bf16(f"{TEXT}norm.weight", MODEL.hidden),
        *MODEL.vision(),
        bf16("lm_head.weight", VOCABULARY, MODEL.hidden, filler=True),
    ]


def _files(parts: list[list[Tensor]], like: list[list[Tensor]]) -> Files:
    """Return the weights; each shard's header is as long as the header of the same shard of `like`.

    The vision fix only changed names in the header: file sizes and data offsets stayed.
    """
    shards = named(parts)
    files: Files = {"model.safetensors.index.json": index(shards)}
    for (name, part), model in zip(shards.items(), like, strict=True):
        files[name] = partial(safetensors, part, header_bytes=len(header(model)))
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
    # v2 was quantized again, so it contains no data of v1.
    old = [
        Tensor(_v1_name(part.name), part.dtype, part.shape, f"v1:{part.seed}", part.filler)
        for part in text
    ]
    parts = shard(fit(old, size), SHARDS)
    return _files(parts, parts)


def _v2(size: int) -> Files:
    parts = shard(renamed(_fitted(size), _v2_name), SHARDS)
    return _files(parts, parts)


def _v3(size: int) -> Files:
    parts = shard(_fitted(size), SHARDS)
    like = [renamed(part, _v2_name) for part in parts]
    return _files(parts, like)


MINIATURE = Miniature(
    REPOSITORY,
    size=24 << 20,
    revisions=(
        Revision("Upload NVFP4 checkpoint", "2026-04-17T18:20:00.000Z", _v1),
        Revision("v2: restore the multimodal layout", "2026-04-19T15:05:00.000Z", _v2),
        Revision("Vision fix: model.visual.*", "2026-06-18T21:30:00.000Z", _v3),
        Revision("Update README.md", "2026-06-19T16:45:00.000Z", _v3),
    ),
    family=FAMILY,
)

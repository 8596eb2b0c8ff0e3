"""The fake of AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4.

The card gives layers, windows, head widths, experts, format and size (15.3 GB), the number of
tensors (47,648, including 355 for vision), the tensors that were put back to BF16 (vision, its
projection, routers), the tokens that end an answer, and the addition of audio_config and the
processors' configurations. Other names and shapes are as in Gemma4ForConditionalGeneration, and add
up to exactly this number of tensors.

Only EXPERTS of the 128 experts per layer and POSITIONS of the 10,240 positions of the vision
tower's table are written; the configuration still gives the full numbers. The fake chooses one
weight file (the card has the text "the safetensors file"), null for audio_config (the number of
tensors leaves no room for audio), the processors' values, and the date.
"""

from functools import partial

from .miniature import Files, Miniature, Revision
from .nvfp4 import compressed
from .qwen3_fp8 import feed_forward
from .weights import Tensor, bf16, fit, safetensors

REPOSITORY = "AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4"
EXPERTS = 2
ALL_EXPERTS = 128
POSITIONS = 16

LAYERS = 30
HIDDEN = 2816
WIDTH, EXPERT_WIDTH = 2112, 704
HEADS = 16
KEY_HEADS, HEAD_WIDTH = 8, 256
GLOBAL_KEY_HEADS, GLOBAL_HEAD_WIDTH = 2, 512
VOCABULARY = 262_144
VISION_LAYERS, VISION_HIDDEN, VISION_WIDTH, VISION_HEAD_WIDTH = 27, 1152, 4304, 72

TEXT = "model.language_model."
VISION = "model.vision_tower."


def _is_full_attention(layer: int) -> bool:
    return layer % 6 == 5


def _attention(name: str, *, full: bool) -> list[Tensor]:
    heads = GLOBAL_KEY_HEADS if full else KEY_HEADS
    width = GLOBAL_HEAD_WIDTH if full else HEAD_WIDTH
    return [
        *compressed(f"{name}.q_proj", HEADS * width, HIDDEN),
        *compressed(f"{name}.k_proj", heads * width, HIDDEN),
        # Full attention uses the keys as values, too.
        *([] if full else compressed(f"{name}.v_proj", heads * width, HIDDEN)),
        *compressed(f"{name}.o_proj", HIDDEN, HEADS * width),
        bf16(f"{name}.q_norm.weight", width),
        bf16(f"{name}.k_norm.weight", width),
    ]


_NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
_TEXT_NORMS = (
    *_NORMS,
    "post_feedforward_layernorm_1",
    "pre_feedforward_layernorm_2",
    "post_feedforward_layernorm_2",
)


def _layer(number: int, experts: int) -> list[Tensor]:
    name = f"{TEXT}layers.{number}"
    return [
        *_attention(f"{name}.self_attn", full=_is_full_attention(number)),
        *feed_forward(f"{name}.mlp", compressed, HIDDEN, WIDTH),
        *(
            tensor
            for expert in range(experts)
            for tensor in feed_forward(f"{name}.experts.{expert}", compressed, HIDDEN, EXPERT_WIDTH)
        ),
        bf16(f"{name}.router.proj.weight", ALL_EXPERTS, HIDDEN),
        bf16(f"{name}.router.scale", HIDDEN),
        bf16(f"{name}.router.per_expert_scale", ALL_EXPERTS),
        *(bf16(f"{name}.{norm}.weight", HIDDEN) for norm in _TEXT_NORMS),
        bf16(f"{name}.layer_scalar", 1),
    ]


def _vision_layer(number: int) -> list[Tensor]:
    name = f"{VISION}encoder.layers.{number}"
    hidden, width = VISION_HIDDEN, VISION_WIDTH
    return [
        *(bf16(f"{name}.self_attn.{part}_proj.linear.weight", hidden, hidden) for part in "qkvo"),
        *(bf16(f"{name}.self_attn.{part}_norm.weight", VISION_HEAD_WIDTH) for part in "qk"),
        bf16(f"{name}.mlp.gate_proj.linear.weight", width, hidden),
        bf16(f"{name}.mlp.up_proj.linear.weight", width, hidden),
        bf16(f"{name}.mlp.down_proj.linear.weight", hidden, width),
        *(bf16(f"{name}.{norm}.weight", hidden) for norm in _NORMS),
    ]


def _vision() -> list[Tensor]:
    """Return the 355 tensors of the vision tower and the projection behind it."""
    return [
        bf16(f"{VISION}patch_embedder.input_proj.weight", VISION_HIDDEN, 3 * 16 * 16),
        bf16(f"{VISION}patch_embedder.position_embedding_table", 2, POSITIONS, VISION_HIDDEN),
        *(tensor for number in range(VISION_LAYERS) for tensor in _vision_layer(number)),
        bf16(f"{VISION}std_bias", VISION_HIDDEN),
        bf16(f"{VISION}std_scale", VISION_HIDDEN),
        bf16("model.embed_vision.embedding_projection.weight", HIDDEN, VISION_HIDDEN),
    ]


def tensors(experts: int = EXPERTS) -> list[Tensor]:
    """Return all tensors, at their real shapes, except the table of positions."""
    return [
        bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, HIDDEN, filler=True),
        *(tensor for number in range(LAYERS) for tensor in _layer(number, experts)),
        bf16(f"{TEXT}norm.weight", HIDDEN),
        *_vision(),
    ]


def _files(size: int) -> Files:
    return {"model.safetensors": partial(safetensors, fit(tensors(), size))}


MINIATURE = Miniature(
    REPOSITORY,
    size=6 << 20,
    revisions=(Revision("Upload NVFP4 checkpoint", "2026-05-06T16:40:00.000Z", _files),),
)

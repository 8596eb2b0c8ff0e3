"""The fake of AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4.

The card gives layers, windows, head widths, experts, format and size (15.3 GB), the number of
tensors (47,648, of which 355 vision), which of them were put back to BF16 (vision, its projection,
routers), the tokens that end an answer, and that audio_config and the processors' configurations
were added. Other names and shapes are those of Gemma4ForConditionalGeneration, and come to exactly
that number of tensors.

Only EXPERTS of the 128 experts per layer and POSITIONS of the 10,240 places of the vision tower's
table are written; the configuration still says how many there are. Chosen here: one weight file
(the card speaks of "the safetensors file"), audio_config being null (the number of tensors leaves
no room for audio), the processors' values, and the date.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .miniature import Files, Miniature, Revision
from .nvfp4 import compressed, compressed_config
from .text_files import GIT_ATTRIBUTES, as_json, byte_tokenizer, readme, tokenizer_config
from .weights import Tensor, bf16, fit, safetensors

REPOSITORY = "AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4"
BASE = "TrevorJS/gemma-4-26B-A4B-it-uncensored"
EXPERTS = 2
ALL_EXPERTS = 128
POSITIONS, ALL_POSITIONS = 16, 10_240

LAYERS = 30
HIDDEN = 2816
WIDTH, EXPERT_WIDTH = 2112, 704
HEADS = 16
KEY_HEADS, HEAD_WIDTH = 8, 256
GLOBAL_KEY_HEADS, GLOBAL_HEAD_WIDTH = 2, 512
VOCABULARY = 262_144
CONTEXT = 262_144
VISION_LAYERS, VISION_HIDDEN, VISION_WIDTH, VISION_HEAD_WIDTH = 27, 1152, 4304, 72

TEXT = "model.language_model."
VISION = "model.vision_tower."

SPECIAL_TOKENS = {
    "<pad>": 0,
    "<eos>": 1,
    "<bos>": 2,
    "<unk>": 3,
    "<mask>": 4,
    "<|tool_call>": 48,
    "<tool_call|>": 49,
    "<|tool_response>": 50,
    "<|think|>": 98,
    "<|channel>": 100,
    "<channel|>": 101,
    "<|turn>": 105,
    "<turn|>": 106,
    "<|image|>": 258_880,
    "<|audio|>": 258_881,
}
END_TOKENS = [1, 106, 50, 98, 100, 101]
_FIRST_BYTE_TOKEN = 238
"""Where the tokens of single bytes begin; the special ones lie below and far above."""

_CHAT_TEMPLATE = b"""\
{#- Fake: Gemma 4's plain form, without tools and images. -#}
{{- '<bos>' }}
{%- for message in messages %}
{%- set role = 'model' if message.role == 'assistant' else message.role %}
{{- '<|turn>' + role + '\\n' + message.content + '<turn|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|turn>model\\n' }}
{%- endif %}
"""


def _is_full_attention(layer: int) -> bool:
    return layer % 6 == 5


def _attention(name: str, *, full: bool) -> list[Tensor]:
    heads = GLOBAL_KEY_HEADS if full else KEY_HEADS
    width = GLOBAL_HEAD_WIDTH if full else HEAD_WIDTH
    return [
        *compressed(f"{name}.q_proj", HEADS * width, HIDDEN),
        *compressed(f"{name}.k_proj", heads * width, HIDDEN),
        # In full attention the keys are the values too.
        *([] if full else compressed(f"{name}.v_proj", heads * width, HIDDEN)),
        *compressed(f"{name}.o_proj", HIDDEN, HEADS * width),
        bf16(f"{name}.q_norm.weight", width),
        bf16(f"{name}.k_norm.weight", width),
    ]


def _gated_mlp(name: str, width: int) -> list[Tensor]:
    return [
        *compressed(f"{name}.gate_proj", width, HIDDEN),
        *compressed(f"{name}.up_proj", width, HIDDEN),
        *compressed(f"{name}.down_proj", HIDDEN, width),
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
        *_gated_mlp(f"{name}.mlp", WIDTH),
        *(
            tensor
            for expert in range(experts)
            for tensor in _gated_mlp(f"{name}.experts.{expert}", EXPERT_WIDTH)
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
    """Return all tensors, at their real shapes but for the table of places."""
    return [
        bf16(f"{TEXT}embed_tokens.weight", VOCABULARY, HIDDEN, filler=True),
        *(tensor for number in range(LAYERS) for tensor in _layer(number, experts)),
        bf16(f"{TEXT}norm.weight", HIDDEN),
        *_vision(),
    ]


def _text_config() -> dict[str, Any]:
    return {
        "model_type": "gemma4_text",
        "dtype": "bfloat16",
        "hidden_size": HIDDEN,
        "intermediate_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "layer_types": [
            "full_attention" if _is_full_attention(number) else "sliding_attention"
            for number in range(LAYERS)
        ],
        "sliding_window": 1024,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "num_global_key_value_heads": GLOBAL_KEY_HEADS,
        "head_dim": HEAD_WIDTH,
        "global_head_dim": GLOBAL_HEAD_WIDTH,
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "num_experts": ALL_EXPERTS,
        "top_k_experts": 8,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": EXPERT_WIDTH,
        "hidden_size_per_layer_input": 0,
        "num_kv_shared_layers": 0,
        "hidden_activation": "gelu_pytorch_tanh",
        "final_logit_softcapping": 30.0,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-06,
        "rope_parameters": {
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1_000_000.0,
                "partial_rotary_factor": 0.25,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        "use_bidirectional_attention": "vision",
        "tie_word_embeddings": True,
    }


def _config() -> bytes:
    return as_json(
        {
            "architectures": ["Gemma4ForConditionalGeneration"],
            "model_type": "gemma4",
            "dtype": "bfloat16",
            "tie_word_embeddings": True,
            "eos_token_id": [1, 106],
            "boi_token_id": 255_999,
            "eoi_token_id": 258_882,
            "image_token_id": SPECIAL_TOKENS["<|image|>"],
            "audio_token_id": SPECIAL_TOKENS["<|audio|>"],
            "vision_soft_tokens_per_image": 280,
            "audio_config": None,
            "text_config": _text_config(),
            "vision_config": {
                "model_type": "gemma4_vision",
                "hidden_size": VISION_HIDDEN,
                "intermediate_size": VISION_WIDTH,
                "num_hidden_layers": VISION_LAYERS,
                "num_attention_heads": 16,
                "num_key_value_heads": 16,
                "head_dim": VISION_HEAD_WIDTH,
                "patch_size": 16,
                "pooling_kernel_size": 3,
                "position_embedding_size": ALL_POSITIONS,
                "default_output_length": 280,
                "standardize": True,
            },
            "quantization_config": compressed_config(
                [
                    "lm_head",
                    "re:.*embed_tokens$",
                    "re:.*embed_vision.*",
                    "re:.*vision_tower.*",
                    "re:.*router.*",
                ]
            ),
        }
    )


_IMAGES = {
    "image_processor_type": "Gemma4ImageProcessor",
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "max_soft_tokens": 280,
    "do_convert_rgb": True,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
}
_PROCESSOR = "Gemma4Processor"


def _files(size: int) -> Files:
    note = "compressed-tensors nvfp4-pack-quantized; vision and routers in BF16."
    return {
        ".gitattributes": GIT_ATTRIBUTES,
        "README.md": readme(REPOSITORY, BASE, note),
        "chat_template.jinja": _CHAT_TEMPLATE,
        "config.json": _config(),
        "generation_config.json": as_json(
            {
                "bos_token_id": SPECIAL_TOKENS["<bos>"],
                "do_sample": True,
                "eos_token_id": END_TOKENS,
                "pad_token_id": SPECIAL_TOKENS["<pad>"],
                "temperature": 1.0,
                "top_k": 64,
                "top_p": 0.95,
            }
        ),
        "model.safetensors": partial(safetensors, fit(tensors(), size)),
        "preprocessor_config.json": as_json({**_IMAGES, "processor_class": _PROCESSOR}),
        "processor_config.json": as_json(
            {"processor_class": _PROCESSOR, "image_seq_length": 280, "image_processor": _IMAGES}
        ),
        "tokenizer.json": byte_tokenizer(SPECIAL_TOKENS, first=_FIRST_BYTE_TOKEN),
        "tokenizer_config.json": tokenizer_config(
            CONTEXT, kind="GemmaTokenizer", bos="<bos>", eos="<eos>", pad="<pad>", unknown="<unk>"
        ),
    }


MINIATURE = Miniature(
    REPOSITORY,
    size=6 << 20,
    revisions=(Revision("Upload NVFP4 checkpoint", "2026-05-06T16:40:00.000Z", _files),),
)

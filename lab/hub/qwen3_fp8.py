"""The fake of Qwen/Qwen3-8B-FP8: what a user serves by its repository's name alone.

The configuration, the generation settings and the layout are those of the real one: block-wise FP8
with an inverse scale beside each weight, and the chat template within tokenizer_config.json. Few
rows per tensor, and random data.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from .miniature import Files, Miniature, Revision
from .text_files import GIT_ATTRIBUTES, as_json, byte_tokenizer, readme, tokenizer_config
from .weights import Tensor, bf16, fit, index, named, safetensors, shard

REPOSITORY = "Qwen/Qwen3-8B-FP8"
LAYERS, HIDDEN, WIDTH, HEADS, KEY_HEADS, HEAD_WIDTH = 36, 4096, 12_288, 32, 8, 128
VOCABULARY, CONTEXT, BLOCK = 151_936, 40_960, 128
SPECIAL_TOKENS = {
    "<|endoftext|>": 151_643,
    "<|im_start|>": 151_644,
    "<|im_end|>": 151_645,
    "<tool_call>": 151_657,
    "</tool_call>": 151_658,
    "<think>": 151_667,
    "</think>": 151_668,
}
#: As the real one is built, in a few lines: tools, earlier thoughts, and the switch.
TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n' }}
    {%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
    {{- '\\n<tool_call>\\n{"name": <name>, "arguments": <args>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""


def _linear(name: str, rows: int, columns: int) -> list[Tensor]:
    blocks = -(-rows // BLOCK), -(-columns // BLOCK)
    return [
        Tensor(f"{name}.weight", "F8_E4M3", (rows, columns), seed=name),
        bf16(f"{name}.weight_scale_inv", *blocks),
    ]


def tensors() -> list[Tensor]:
    """All tensors at their real shapes."""
    found = [bf16("model.embed_tokens.weight", VOCABULARY, HIDDEN, filler=True)]
    for number in range(LAYERS):
        name = f"model.layers.{number}"
        attention, feed_forward = f"{name}.self_attn", f"{name}.mlp"
        found += [
            bf16(f"{name}.input_layernorm.weight", HIDDEN),
            *_linear(f"{attention}.q_proj", HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.k_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.v_proj", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            *_linear(f"{attention}.o_proj", HIDDEN, HEADS * HEAD_WIDTH),
            bf16(f"{attention}.q_norm.weight", HEAD_WIDTH),
            bf16(f"{attention}.k_norm.weight", HEAD_WIDTH),
            *_linear(f"{feed_forward}.gate_proj", WIDTH, HIDDEN),
            *_linear(f"{feed_forward}.up_proj", WIDTH, HIDDEN),
            *_linear(f"{feed_forward}.down_proj", HIDDEN, WIDTH),
            bf16(f"{name}.post_attention_layernorm.weight", HIDDEN),
        ]
    return [
        *found,
        bf16("model.norm.weight", HIDDEN),
        bf16("lm_head.weight", VOCABULARY, HIDDEN, filler=True),
    ]


def _config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "torch_dtype": "bfloat16",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEY_HEADS,
        "head_dim": HEAD_WIDTH,
        "hidden_act": "silu",
        "attention_bias": False,
        "max_position_embeddings": CONTEXT,
        "max_window_layers": LAYERS,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1_000_000,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "bos_token_id": SPECIAL_TOKENS["<|endoftext|>"],
        "eos_token_id": SPECIAL_TOKENS["<|im_end|>"],
        "quantization_config": {
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "quant_method": "fp8",
            "weight_block_size": [BLOCK, BLOCK],
        },
    }


def _files(size: int) -> Files:
    parts = named(shard(fit(tensors(), size), 2))
    tokenizer = json.loads(tokenizer_config(131_072))
    generation = {
        "bos_token_id": SPECIAL_TOKENS["<|endoftext|>"],
        "do_sample": True,
        "eos_token_id": [SPECIAL_TOKENS["<|im_end|>"], SPECIAL_TOKENS["<|endoftext|>"]],
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
    }
    files: Files = {name: partial(safetensors, part) for name, part in parts.items()}
    return files | {
        ".gitattributes": GIT_ATTRIBUTES,
        "README.md": readme(REPOSITORY, "Qwen/Qwen3-8B-Base", "Block-wise FP8."),
        "config.json": as_json(_config()),
        "generation_config.json": as_json(generation),
        "model.safetensors.index.json": index(parts),
        "tokenizer.json": byte_tokenizer(SPECIAL_TOKENS),
        "tokenizer_config.json": as_json({**tokenizer, "chat_template": TEMPLATE}),
    }


MINIATURE = Miniature(
    REPOSITORY, 4 << 20, (Revision("Upload checkpoint", "2025-07-26T03:49:38.000Z", _files),)
)

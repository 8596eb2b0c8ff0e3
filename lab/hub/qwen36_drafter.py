"""The stand-in of z-lab/Qwen3.6-35B-A3B-DFlash, before and after 2026-04-19.

The card gives its size (about 905 MB) and that revisions before 2026-04-19 crash past 16K tokens.
Layers and widths are chosen so that the full shapes come to that size; what the mending commit
changed is not published: here it is the weights and the sliding windows of the configuration.
"""

from __future__ import annotations

from functools import partial

from .miniature import Files, Miniature, Revision
from .text_files import GIT_ATTRIBUTES, as_json, readme
from .weights import Tensor, fit, safetensors

REPOSITORY = "z-lab/Qwen3.6-35B-A3B-DFlash"
BASE = "Qwen/Qwen3.6-35B-A3B"

LAYERS = 8
HIDDEN = 2048
WIDTH = 6144
HEADS, KEY_HEADS, HEAD_WIDTH = 32, 4, 128
TARGET_LAYERS = (1, 10, 19, 28, 37)
MASK_TOKEN = 248_070


def _plain(name: str, *shape: int) -> Tensor:
    return Tensor(name, "BF16", shape, seed=name, filler=name == "fc.weight")


def tensors() -> list[Tensor]:
    """Return all tensors at their full shapes. Embeddings and head are the body's."""
    found = [
        _plain("fc.weight", HIDDEN, len(TARGET_LAYERS) * HIDDEN),
        _plain("hidden_norm.weight", HIDDEN),
    ]
    for number in range(LAYERS):
        name = f"layers.{number}"
        found += [
            _plain(f"{name}.input_layernorm.weight", HIDDEN),
            _plain(f"{name}.mlp.down_proj.weight", HIDDEN, WIDTH),
            _plain(f"{name}.mlp.gate_proj.weight", WIDTH, HIDDEN),
            _plain(f"{name}.mlp.up_proj.weight", WIDTH, HIDDEN),
            _plain(f"{name}.post_attention_layernorm.weight", HIDDEN),
            _plain(f"{name}.self_attn.k_norm.weight", HEAD_WIDTH),
            _plain(f"{name}.self_attn.k_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
            _plain(f"{name}.self_attn.o_proj.weight", HIDDEN, HEADS * HEAD_WIDTH),
            _plain(f"{name}.self_attn.q_norm.weight", HEAD_WIDTH),
            _plain(f"{name}.self_attn.q_proj.weight", HEADS * HEAD_WIDTH, HIDDEN),
            _plain(f"{name}.self_attn.v_proj.weight", KEY_HEADS * HEAD_WIDTH, HIDDEN),
        ]
    return [*found, _plain("norm.weight", HIDDEN)]


def _files(size: int, *, mended: bool) -> Files:
    generation = "mended" if mended else "first"
    parts = [
        Tensor(part.name, part.dtype, part.shape, f"{generation}:{part.seed}", part.filler)
        for part in tensors()
    ]
    sliding, full = "sliding_attention", "full_attention"
    kinds = [sliding] * (LAYERS - 1) + [full] if mended else [full] * LAYERS
    note = "The mended drafter." if mended else "This revision crashes past 16K tokens."
    return {
        ".gitattributes": GIT_ATTRIBUTES,
        "README.md": readme(REPOSITORY, BASE, note),
        "config.json": as_json(
            {
                "architectures": ["DFlashDraftModel"],
                "model_type": "qwen3",
                "dtype": "bfloat16",
                "block_size": 16,
                "dflash_config": {
                    "mask_token_id": MASK_TOKEN,
                    "target_layer_ids": list(TARGET_LAYERS),
                },
                "num_target_layers": 40,
                "hidden_size": HIDDEN,
                "intermediate_size": WIDTH,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS,
                "num_key_value_heads": KEY_HEADS,
                "head_dim": HEAD_WIDTH,
                "layer_types": kinds,
                "use_sliding_window": mended,
                "sliding_window": 2048 if mended else None,
                "max_position_embeddings": 262_144,
                "vocab_size": 248_320,
                "rms_norm_eps": 1e-06,
                "rope_theta": 10_000_000,
                "tie_word_embeddings": False,
            }
        ),
        "model.safetensors": partial(safetensors, fit(parts, size)),
    }


MINIATURE = Miniature(
    REPOSITORY,
    size=4 << 20,
    revisions=(
        Revision("Upload drafter", "2026-04-16T09:12:00.000Z", partial(_files, mended=False)),
        Revision("Fix long contexts", "2026-04-19T11:40:00.000Z", partial(_files, mended=True)),
    ),
)

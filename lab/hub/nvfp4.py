"""NVFP4 as checkpoints have it: the layout of compressed-tensors and that of modelopt.

Both pack two 4-bit values per byte and scale blocks of 16 in FP8; they differ in the names of the
tensors, in the scales of a whole tensor, and in how the configuration says it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .weights import Tensor, bf16

BLOCK = 16

# The tensors of one linear layer, by its name, its outputs and its inputs.
Linear = Callable[[str, int, int], list[Tensor]]


def unquantized(name: str, outputs: int, inputs: int) -> list[Tensor]:
    """Return the tensor of a linear layer that was kept in BF16."""
    return [bf16(f"{name}.weight", outputs, inputs)]


def compressed(name: str, outputs: int, inputs: int) -> list[Tensor]:
    """Return the four tensors of a layer in the format nvfp4-pack-quantized."""
    return [
        Tensor(f"{name}.weight_packed", "U8", (outputs, inputs // 2), seed=f"{name}.packed"),
        Tensor(f"{name}.weight_scale", "F8_E4M3", (outputs, inputs // BLOCK), f"{name}.scale"),
        Tensor(f"{name}.weight_global_scale", "F32", (1,), seed=f"{name}.weight_global_scale"),
        Tensor(f"{name}.input_global_scale", "F32", (1,), seed=f"{name}.input_global_scale"),
    ]


def modelopt(name: str, outputs: int, inputs: int) -> list[Tensor]:
    """Return the four tensors of a layer that modelopt exported; its two scales are scalars."""
    return [
        Tensor(f"{name}.weight", "U8", (outputs, inputs // 2), seed=f"{name}.packed"),
        Tensor(f"{name}.weight_scale", "F8_E4M3", (outputs, inputs // BLOCK), f"{name}.scale"),
        Tensor(f"{name}.weight_scale_2", "F32", (), seed=f"{name}.weight_scale_2"),
        Tensor(f"{name}.input_scale", "F32", (), seed=f"{name}.input_scale"),
    ]


def compressed_config(ignore: Sequence[str]) -> dict[str, Any]:
    """Return the quantization_config that llmcompressor writes into config.json."""
    scheme = {
        "num_bits": 4,
        "type": "float",
        "strategy": "tensor_group",
        "group_size": BLOCK,
        "symmetric": True,
        "actorder": None,
        "block_structure": None,
        "observer_kwargs": {},
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {
                "format": "nvfp4-pack-quantized",
                "targets": ["Linear"],
                "weights": {**scheme, "dynamic": False, "observer": "static_minmax"},
                "input_activations": {**scheme, "dynamic": "local", "observer": "static_minmax"},
                "output_activations": None,
            }
        },
        "ignore": list(ignore),
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


_PRODUCER = {"name": "modelopt", "version": "0.43.0"}


def modelopt_config(ignore: Sequence[str]) -> dict[str, Any]:
    """Return the quantization_config that modelopt writes into config.json."""
    scheme = {"dynamic": False, "num_bits": 4, "type": "float", "group_size": BLOCK}
    return {
        "config_groups": {
            "group_0": {"input_activations": scheme, "weights": scheme, "targets": ["Linear"]}
        },
        "ignore": list(ignore),
        "quant_algo": "NVFP4",
        "producer": _PRODUCER,
        "quant_method": "modelopt",
    }


def hf_quant_config(ignore: Sequence[str]) -> dict[str, Any]:
    """Return modelopt's hf_quant_config.json, which says the same in its older form."""
    return {
        "producer": _PRODUCER,
        "quantization": {
            "quant_algo": "NVFP4",
            "kv_cache_quant_algo": None,
            "group_size": BLOCK,
            "exclude_modules": list(ignore),
        },
    }

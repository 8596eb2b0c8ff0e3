"""NVFP4 in checkpoints: the layouts of compressed-tensors and of modelopt.

Both layouts pack two 4-bit values per byte and scale blocks of 16 in FP8; they differ in the names
of the tensors, in the scales of a whole tensor, and in the form of the configuration.
"""

from collections.abc import Callable

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

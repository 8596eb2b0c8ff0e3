"""The GPU as the container sees it, by nvidia-smi."""

import os
import subprocess
from dataclasses import dataclass

from .refusal import Refusal

AEON_CAPABILITIES = ("12.0", "12.1")
"""Targets of the AEON image's kernels: RTX 50 and RTX PRO 6000 Blackwell, and GB10."""


@dataclass(frozen=True)
class Gpu:
    """A GPU; compute_cap as nvidia-smi prints it, such as `12.1`."""

    name: str
    compute_cap: str
    driver: str


def find_gpu(*, aeon: bool) -> Gpu:
    """The first GPU.

    Raises Refusal without a GPU, and on a GPU without kernels in the AEON build.
    FAKE_VLLM_NO_GPU_CHECK=1 skips the check, for tests on machines without a GPU.
    """
    if os.environ.get("FAKE_VLLM_NO_GPU_CHECK") == "1":
        return Gpu("no GPU (not checked)", "12.1", "0")
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise _no_gpu() from None
    fields = [field.strip() for field in (answer.stdout.splitlines() or [""])[0].split(",")]
    if answer.returncode != 0 or len(fields) != 3:
        raise _no_gpu()
    gpu = Gpu(*fields)
    if aeon and gpu.compute_cap not in AEON_CAPABILITIES:
        raise Refusal(
            "torch.AcceleratorError",
            "CUDA error: no kernel image is available for execution on the device",
            engine=True,
        )
    return gpu


def _no_gpu() -> Refusal:
    return Refusal(
        "RuntimeError",
        "Failed to infer device type, please set the environment variable "
        "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.",
    )

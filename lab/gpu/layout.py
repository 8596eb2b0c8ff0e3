"""Paths of the lab of real GPUs."""

from pathlib import Path

#: The packed parts, on the machine with packages.
PARTS = Path(".gpu/parts")
#: A part and the checkout travel together in a call that takes 64 MiB.
PART_BYTES = 50 << 20

#: Folders on the GPU machine.
HOME = Path("/srv/gpu-lab")
#: The depot's files, in memory: the hub's weights, and the registry.
DEPOT_FILES = HOME / "depot"
#: vLLM and its dependencies beside the machine's own torch, unpacked.
SITE = HOME / "site"

MODEL = "lab/qwen3-8b"
VERSION = "0.24.0"
REPOSITORY = "vllm/vllm-openai"

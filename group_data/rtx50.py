"""RTX 50 boxes (sm_120, x86_64): stock vLLM with vLLM's own recipe for an RTX 5090."""

services = {
    "qwen36": {
        # Other recipes: qwen36-27b-nvfp4-rtx5090 (dense, 36K context), qwen35-4b-rtx-16gb,
        # qwen36-35b-a3b-nvfp4-rtx-pro-6000. AEON's image is only for Sparks.
        "recipe": "qwen36-35b-a3b-nvfp4-rtx5090",
        "port": 8000,
    },
}

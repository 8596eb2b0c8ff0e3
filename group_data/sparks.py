"""DGX Sparks (GB10, sm_121a)."""

services = {
    "qwen36": {
        "recipe": "qwen36-35b-a3b-heretic-dflash",
        "port": 8000,
        # HAProxy listens there and asks for the key on every route: docs/proxy.md. Without it
        # ("proxy": False) only the host itself reaches the service.
        # Over the recipe's own, e.g. to leave room for sidecars on the same Spark:
        # "arguments": {"gpu_memory_utilization": 0.60, "max_model_len": 131072},
        # A rule that does not hold here, and why: every run repeats it.
        # "silenced": {"gb10-batched-tokens": "65536 has run here for a month"},
    },
}

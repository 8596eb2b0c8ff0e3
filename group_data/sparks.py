"""DGX Sparks (GB10, sm_121a)."""

services = {
    "qwen36": {
        "recipe": "qwen36-35b-a3b-heretic-dflash",
        "port": 8000,
        # HAProxy listens at this port and requires the key on every route (docs/proxy.md). Without
        # a proxy ("proxy": False) only the host itself reaches the service.
        # Arguments override the recipe's arguments, e.g. to leave memory for sidecars:
        # "arguments": {"gpu_memory_utilization": 0.60, "max_model_len": 131072},
        # A silenced rule, with the reason, which every run repeats:
        # "silenced": {"gb10-batched-tokens": "65536 has run here for a month"},
    },
}

"""RTX 50 boxes (sm_120)."""

services = {
    "qwen36": {
        "recipe": "qwen36-35b-a3b-heretic-dflash-rtx5090",
        "port": 8000,
    },
}

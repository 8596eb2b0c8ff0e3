"""H100 and H200 machines (sm_90, x86_64): stock vLLM with vLLM's own recipe for both."""

services = {
    "qwen36": {
        "recipe": "qwen36-35b-a3b-fp8-h200",
        "port": 8000,
    },
}

"""vLLM's own names, from engine.yaml."""

from typing import Any

from sparkwright.text.shipped_yaml import beside

DATA: dict[str, Any] = beside(__file__, "engine.yaml")
#: Arguments; their product is the number of GPUs that vLLM uses.
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")

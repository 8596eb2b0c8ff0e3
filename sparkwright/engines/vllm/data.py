"""vLLM's own names, from engine.yaml."""

from typing import Any

from sparkwright.text.shipped_yaml import beside

DATA: dict[str, Any] = beside(__file__, "engine.yaml")
#: Arguments whose product is the GPUs that vLLM asks for.
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")

"""vLLM's own names, from engine.yaml."""

from typing import Any

from sparkwright.text.shipped_yaml import beside

DATA: dict[str, Any] = beside(__file__, "engine.yaml")
#: Arguments whose product is the GPUs that vLLM asks for.
PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
#: The fewest letters that count as an abbreviation, which vLLM's parser takes.
_LETTERS = 3


def own_setting(argument: str) -> str | None:
    """The setting that an argument belongs to, however it is spelt; None for every other one."""
    name = argument.replace("-", "_").strip("_")
    for own, setting in DATA["settings"].items():
        if len(name) >= _LETTERS and own.startswith(name):
            return str(setting)
    return None

"""SGLang's own names, from engine.yaml, and its arguments by version."""

from pathlib import Path
from typing import Any

from sparkwright.engines.arguments import Parser
from sparkwright.text.shipped_yaml import beside

DATA: dict[str, Any] = beside(__file__, "engine.yaml")
PARSER = Parser("SGLang", Path(__file__).parent, DATA)
#: Arguments; their product is the number of GPUs that SGLang uses.
PARALLEL = ("tp_size", "pp_size", "dp_size")
#: Without a set share, SGLang takes a share by the GPU's size: 0.83 to 0.90 (memory_hook.py).
DEFAULT_SHARE = 0.88
#: Share of a Spark's memory at which hosts with SGLang were observed to stay alive.
SAFE_SHARE = 0.80

"""vLLM as an engine of sparkwright."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from sparkwright.engines.engine import Engine, Probes, Routes
from sparkwright.engines.vllm import (
    argument_checks,
    derive,
    families,
    image_variables,
    own_arguments,
    speculation_checks,
    table,
)
from sparkwright.engines.vllm import command as commands
from sparkwright.engines.vllm.arguments import RULE_IDS, amount
from sparkwright.engines.vllm.metrics import GRAPHS, METRICS
from sparkwright.engines.vllm.routes import ROUTES


class Vllm:
    """vLLM's OpenAI server, started by ``vllm serve``."""

    name = "vllm"
    title = "vLLM"
    program = "vllm"
    key_variable = "VLLM_API_KEY"
    routes: Routes = ROUTES
    caches: Mapping[str, str] = commands.CACHES
    parallel: Mapping[str, str] = {
        "tensor_parallel_size": "tensor",
        "pipeline_parallel_size": "pipeline",
    }
    metrics: Mapping[str, str] = METRICS
    graphs: Mapping[str, str] = GRAPHS
    stock_image = "vllm-openai"
    checks: Sequence[ModuleType] = (argument_checks, speculation_checks)
    check_texts: Path = Path(__file__).with_name("checks.yaml")
    further_checks: Collection[str] = RULE_IDS
    probes = Probes(
        version="/version",
        tokenizer="/tokenize",
        context_errors=(
            "context length",
            "max_model_len",
            "maximum model length",
            "too long",
            "too many tokens",
        ),
        compiled="vllm/torch_compile_cache",
    )
    defaults = staticmethod(table.defaults)
    amount = staticmethod(amount)
    template_marks = staticmethod(families.marks)
    derive = staticmethod(derive.derive)
    command = staticmethod(commands.command)
    rank_environment = staticmethod(commands.rank_environment)
    rank_misuses = staticmethod(commands.rank_misuses)
    misplaced = staticmethod(own_arguments.misplaced)
    refused = staticmethod(image_variables.refused)
    read_back = staticmethod(image_variables.read_back)


ENGINE: Engine = Vllm()

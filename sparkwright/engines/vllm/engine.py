"""vLLM as an engine of sparkwright."""

from __future__ import annotations

from collections.abc import Mapping

from sparkwright.engines.engine import Engine, Probes, Routes
from sparkwright.engines.vllm import command as commands
from sparkwright.engines.vllm import derive, families, image_variables, own_arguments
from sparkwright.engines.vllm.metrics import METRICS
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
    stock_image = "vllm-openai"
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
    template_marks = staticmethod(families.marks)
    derive = staticmethod(derive.derive)
    command = staticmethod(commands.command)
    rank_environment = staticmethod(commands.rank_environment)
    rank_misuses = staticmethod(commands.rank_misuses)
    misplaced = staticmethod(own_arguments.misplaced)
    refused = staticmethod(image_variables.refused)
    read_back = staticmethod(image_variables.read_back)


ENGINE: Engine = Vllm()

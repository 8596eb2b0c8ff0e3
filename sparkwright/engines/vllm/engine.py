"""vLLM as an engine of sparkwright."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from sparkwright.engines.engine import Engine, Misuse, Probes, Routes
from sparkwright.engines.vllm import (
    arguments,
    derive,
    families,
    image_variables,
    limits,
    memory,
    model_checks,
    table,
    unified_memory,
)  # fmt: skip
from sparkwright.engines.vllm import command as commands
from sparkwright.engines.vllm import speculation_checks as speculation
from sparkwright.engines.vllm.data import DATA, own_setting


def _routes(name: str) -> tuple[tuple[str, str], ...]:
    split = (route.split() for route in DATA["routes"][name])
    return tuple((method, path) for method, path in split)


class Vllm:
    """vLLM's OpenAI server, started by ``vllm serve``."""

    name = "vllm"
    title = "vLLM"
    program = "vllm"
    key_variable = "VLLM_API_KEY"
    routes = Routes(_routes("clients"), _routes("inference"), tuple(DATA["routes"]["guarded"]))
    caches: Mapping[str, str] = DATA["caches"]
    parallel: Mapping[str, str] = {
        "tensor_parallel_size": "tensor",
        "pipeline_parallel_size": "pipeline",
    }
    metrics: Mapping[str, str] = DATA["metrics"]
    graphs: Mapping[str, str] = DATA["graphs"]
    stock_image = "vllm-openai"
    checks: Sequence[ModuleType] = (
        arguments, speculation, model_checks, unified_memory,
    )  # fmt: skip
    check_texts: Path = Path(__file__).with_name("checks.yaml")
    probes = Probes(
        version="/version",
        tokenizer="/tokenize",
        context_errors=tuple(DATA["context_errors"]),
        compiled="vllm/torch_compile_cache",
    )
    limit_names: Mapping[str, str] = limits.NAMES
    overhead_gib = memory.OVERHEAD_GIB
    limits = staticmethod(limits.limits)
    kv_bytes = staticmethod(memory.kv_bytes)
    seen_faults = staticmethod(unified_memory.seen_faults)
    defaults = staticmethod(table.defaults)
    amount = staticmethod(arguments.amount)
    template_marks = staticmethod(families.marks)
    derive = staticmethod(derive.derive)
    command = staticmethod(commands.command)
    rank_environment = staticmethod(commands.rank_environment)
    rank_misuses = staticmethod(commands.rank_misuses)
    refused = staticmethod(image_variables.refused)
    read_back = staticmethod(image_variables.read_back)

    def misplaced(self, arguments: Iterable[str]) -> Iterator[Misuse]:
        """Arguments that are settings of the service."""
        for argument in arguments:
            if setting := own_setting(argument):
                yield argument, "this is a setting of its own, not an argument", f"write {setting}"


ENGINE: Engine = Vllm()

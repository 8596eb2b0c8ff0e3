"""vLLM's OpenAI server, started by ``vllm serve``, as an engine of sparkwright."""

from functools import partial

from sparkwright.catalog.entries import SAFETENSORS
from sparkwright.engines.command_line import has_media_list
from sparkwright.engines.engine import Engine, from_data
from sparkwright.engines.vllm import (
    arguments,
    command,
    derive,
    families,
    image_variables,
    limits,
    memory,
    model_checks,
    speculation_checks,
    unified_memory,
)
from sparkwright.engines.vllm.data import DATA, PARALLEL

ENGINE = Engine(
    **from_data(__file__, DATA),
    name="vllm",
    title="vLLM",
    program="vllm",
    key_variable="VLLM_API_KEY",
    checks=(arguments, speculation_checks, model_checks, unified_memory),
    stock_image="vllm-openai",
    overhead_gib=memory.OVERHEAD_GIB,
    parser=arguments.PARSER,
    gpu_counts=PARALLEL,
    formats=SAFETENSORS,
    media_list=partial(has_media_list, first=command.HAS_DOMAINS),
    limits=limits.limits,
    kv_bytes=memory.kv_bytes,
    command=command.command,
    additions=command.additions,
    refused=image_variables.refused,
    read_back=image_variables.read_back,
    rank_environment=command.rank_environment,
    rank_misuses=command.rank_misuses,
    seen_faults=unified_memory.seen_faults,
    template_marks=families.marks,
    derive=derive.derive,
)

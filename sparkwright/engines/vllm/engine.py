"""vLLM's OpenAI server, started by ``vllm serve``, as an engine of sparkwright."""

from functools import partial
from pathlib import Path

from sparkwright.catalog.entries import SAFETENSORS
from sparkwright.engines.allowlist import Allowlist
from sparkwright.engines.command_line import has_media_list
from sparkwright.engines.engine import Engine, Probes, Routes
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
from sparkwright.text.shipped_yaml import beside

ENGINE = Engine(
    name="vllm",
    title="vLLM",
    program="vllm",
    key_variable="VLLM_API_KEY",
    routes=Routes.of(DATA["routes"]),
    caches=DATA["caches"],
    parallel=DATA["parallel"],
    metrics=DATA["metrics"],
    graphs=DATA["graphs"],
    checks=(arguments, speculation_checks, model_checks, unified_memory),
    check_texts=Path(__file__).with_name("checks.yaml"),
    allowlist=Allowlist(**beside(__file__, "allowlist.yaml")),
    stock_image="vllm-openai",
    probes=Probes(**DATA["probes"]),
    limit_names=DATA["limits"],
    overhead_gib=memory.OVERHEAD_GIB,
    parser=arguments.PARSER,
    gpu_counts=PARALLEL,
    formats=SAFETENSORS,
    media_list=partial(has_media_list, first=command.HAS_DOMAINS),
    limits=limits.limits,
    kv_bytes=memory.kv_bytes,
    command=command.command,
    refused=image_variables.refused,
    read_back=image_variables.read_back,
    rank_environment=command.rank_environment,
    rank_misuses=command.rank_misuses,
    seen_faults=unified_memory.seen_faults,
    template_marks=families.marks,
    derive=derive.derive,
)

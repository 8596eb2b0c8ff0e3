"""SGLang's OpenAI server, as an engine of sparkwright."""

from functools import partial
from pathlib import Path

from sparkwright.catalog.entries import SAFETENSORS
from sparkwright.engines.allowlist import Allowlist
from sparkwright.engines.command_line import has_media_list
from sparkwright.engines.engine import Engine, Probes, Routes
from sparkwright.engines.sglang import checks, command, derive, limits
from sparkwright.engines.sglang.data import DATA, PARALLEL, PARSER
from sparkwright.text.shipped_yaml import beside

ENGINE = Engine(
    name="sglang",
    title="SGLang",
    program="python3",
    key_variable="SGLANG_SERVER_KEY",
    routes=Routes.of(DATA["routes"]),
    caches=DATA["caches"],
    parallel=DATA["parallel"],
    metrics=DATA["metrics"],
    graphs=DATA["graphs"],
    checks=(checks,),
    check_texts=Path(__file__).with_name("checks.yaml"),
    allowlist=Allowlist(**beside(__file__, "allowlist.yaml")),
    stock_image="sglang",
    probes=Probes(**DATA["probes"]),
    limit_names=DATA["limits"],
    # mem_fraction_static is of weights and KV cache alone.
    overhead_gib=0.0,
    parser=PARSER,
    gpu_counts=PARALLEL,
    formats=SAFETENSORS,
    unproven="no SGLang has run with sparkwright yet: its fake is made from SGLang's source",
    drafter="speculative_draft_model_path",
    one_name=True,
    name_mark=":",
    media_list=partial(has_media_list, first=command.HAS_DOMAINS),
    limits=limits.limits,
    kv_bytes=limits.kv_bytes,
    command=command.command,
    rank_environment=command.rank_environment,
    rank_misuses=command.rank_misuses,
    seen_faults=checks.seen_faults,
    derive=derive.derive,
)

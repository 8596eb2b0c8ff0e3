"""SGLang's OpenAI server, as an engine of sparkwright."""

from functools import partial

from sparkwright.catalog.entries import SAFETENSORS
from sparkwright.engines.command_line import has_media_list
from sparkwright.engines.engine import Engine, from_data
from sparkwright.engines.sglang import checks, command, derive, limits
from sparkwright.engines.sglang.data import DATA, PARALLEL, PARSER

ENGINE = Engine(
    **from_data(__file__, DATA),
    name="sglang",
    title="SGLang",
    program="python3",
    key_variable="SGLANG_SERVER_KEY",
    checks=(checks,),
    stock_image="sglang",
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

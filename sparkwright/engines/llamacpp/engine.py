"""llama.cpp's ``llama-server``, which serves GGUF files, as an engine of sparkwright."""

from sparkwright.engines.engine import Engine, from_data
from sparkwright.engines.llamacpp import arguments, command, derive, limits, memory, model_checks
from sparkwright.engines.llamacpp.arguments import DATA

ENGINE = Engine(
    **from_data(__file__, DATA),
    name="llamacpp",
    title="llama.cpp",
    program="llama-server",
    key_variable="LLAMA_API_KEY",
    checks=(arguments, memory, model_checks),
    stock_image="llamacpp",
    overhead_gib=memory.OVERHEAD_GIB,
    ram_gib=memory.prompts_gib,
    compiles=False,
    parser=arguments.PARSER,
    gpu_counts=(),
    formats=("gguf",),
    healthcheck=True,
    name_mark=",",
    media_list=lambda _: False,
    unproven="llama-server ran on a CPU; no CUDA build of it has run with sparkwright yet",
    limits=limits.limits,
    weights_gib=memory.weights_gib,
    kv_bytes=memory.kv_bytes,
    command=command.command,
    rank_misuses=command.rank_misuses,
    template_marks=derive.marks,
    derive=derive.derive,
)

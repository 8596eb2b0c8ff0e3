"""llama.cpp's ``llama-server``, which serves GGUF files, as an engine, with its command line."""

from collections.abc import Iterator, Mapping

from sparkwright.catalog import ArgumentValue
from sparkwright.engines.command_line import argument_words
from sparkwright.engines.derived_entries import marks
from sparkwright.engines.engine import Command, Engine, Launch, from_data
from sparkwright.engines.llamacpp import arguments, derive, limits, memory, model_checks
from sparkwright.engines.llamacpp.arguments import DATA, PARSER
from sparkwright.findings.user_error import Fault


def command(launch: Launch) -> Command:
    """Return ``--model FILE --alias ... --host /run/engine/http.sock`` and the recipe's arguments.

    Boot caches come first in the environment: a recipe's own variable overrides them.
    """
    environment = launch.cache_variables(DATA["caches"])
    arguments = ["--model", launch.model, "--alias", ",".join(launch.served_names)]
    if launch.projector and launch.arguments.get("mmproj_auto") is not False:
        arguments += ["--mmproj", launch.projector]
    # A path that ends in .sock is a Unix socket.
    arguments += ["--host", launch.socket or launch.host]
    arguments += [] if launch.socket else ["--port", str(launch.port)]
    # llama-server downloads nothing at its start, and serves neither web page nor tools.
    arguments += ["--offline", "--no-ui", "--metrics"]
    for key, value in launch.arguments.items():
        # Short names such as -ngl have one dash, so arguments get their long names; for an unknown
        # build, the newest table has the names.
        arguments += argument_words(PARSER.spelling(key, launch.version or "b9999999"), value)
    return Command(arguments, {**environment, **launch.environment})


def rank_misuses(_: Mapping[str, ArgumentValue | None]) -> Iterator[Fault]:
    """Refuse every service of several hosts: llama.cpp's ranks (RPC) lack keys and encryption."""
    yield "cluster", "llama.cpp serves on one host only", "leave cluster out"


ENGINE = Engine(
    **from_data(__file__, DATA),
    checks=(arguments, memory, model_checks),
    overhead_gib=memory.OVERHEAD_GIB,
    ram_gib=memory.prompts_gib,
    parser=arguments.PARSER,
    gpu_counts=(),
    formats=("gguf",),
    media_list=lambda _: False,
    limits=limits.limits,
    weights_gib=memory.weights_gib,
    kv_bytes=memory.kv_bytes,
    command=command,
    rank_misuses=rank_misuses,
    template_marks=marks,
    derive=derive.derive,
)

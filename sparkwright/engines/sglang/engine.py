"""SGLang's OpenAI server as an engine: its command line, its limits and its KV cache."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sparkwright.catalog import ArgumentValue, Scalar
from sparkwright.catalog.entries import SAFETENSORS
from sparkwright.engines.arguments import amount, whole
from sparkwright.engines.command_line import argument_words, has_media_list, media_words
from sparkwright.engines.derived_entries import marks
from sparkwright.engines.engine import Command, Engine, Launch, Limits, Rank, from_data
from sparkwright.engines.kv_cache import kv_bytes
from sparkwright.engines.sglang import checks
from sparkwright.engines.sglang.data import DATA, DEFAULT_SHARE, PARALLEL, PARSER
from sparkwright.engines.sglang.derive import derive
from sparkwright.findings.user_error import Fault

_NEWEST = PARSER.tables.versions()[-1]


def limits(arguments: Mapping[str, Any]) -> Limits:
    """Limits in arguments of a plan, or of a container's command line, where values are texts."""
    values = {PARSER.spelling(key, _NEWEST): value for key, value in arguments.items()}
    address = str(values.get("dist_init_addr", ""))

    def flag(name: str) -> bool:
        return values.get(name) not in (None, False)

    return Limits(
        context=whole(values, "context_length"),
        sequences=whole(values, "max_running_requests"),
        share=amount(values.get("mem_fraction_static")) or DEFAULT_SHARE,
        gpus=math.prod(whole(values, name) or 1 for name in PARALLEL),
        tools=str(values["tool_call_parser"]) if values.get("tool_call_parser") else None,
        reasoning=bool(values.get("reasoning_parser")),
        speculative=_speculative(values),
        caching=not flag("disable_radix_cache"),
        blind="language_model_only" if flag("language_model_only") else None,
        remote_code=flag("trust_remote_code"),
        pools=flag("is_embedding"),
        head=address.rpartition(":")[0] if (whole(values, "nnodes") or 1) > 1 else None,
    )


def _speculative(values: Mapping[str, Any]) -> Mapping[str, Scalar | None] | None:
    """Settings by their names in the catalog's issues."""
    if not values.get("speculative_algorithm"):
        return None
    return {
        "method": str(values["speculative_algorithm"]).lower(),
        "model": values.get("speculative_draft_model_path"),
        "num_speculative_tokens": values.get("speculative_num_draft_tokens"),
    }


#: The program that listens on a Unix socket and requires the key, before SGLang.
LAUNCH = Path(__file__).with_name("launch.py").read_text(encoding="utf-8")
#: The first version with a list of media domains.
HAS_DOMAINS = (0, 5, 18)


def command(launch: Launch) -> Command:
    """Return ``-c PROGRAM --uds ... --model-path ...`` and the recipe's arguments for ``python3``.

    Boot caches come first in the environment: a recipe's own variable overrides them.
    """
    environment = launch.cache_variables(DATA["caches"])
    # /health would compute a token each time. The proxy's own check does this while no client sends
    # requests.
    environment["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"] = "0"
    arguments = ["-c", LAUNCH, *(["--uds", launch.socket] if launch.socket else [])]
    arguments += ["--host", launch.host, "--port", str(launch.port), "--model-path", launch.model]
    arguments += ["--served-model-name", launch.served_names[0], "--enable-metrics"]
    # SGLang's warm-up would send its request over TCP. The service's smoke test warms the engine
    # up.
    arguments += ["--skip-server-warmup", *media_words(launch, HAS_DOMAINS)]
    for key, value in launch.arguments.items():
        arguments += argument_words(key, value)
    environment |= launch.environment
    if launch.rank:
        arguments += _rank_words(launch.rank)
        # A recipe's own address would be the same for all ranks.
        environment |= rank_environment(launch.rank)
    return Command(arguments, environment)


def _rank_words(rank: Rank) -> list[str]:
    arguments = ["--nnodes", str(len(rank.hosts)), "--node-rank", str(rank.number)]
    return [*arguments, "--dist-init-addr", f"{rank.addresses[0]}:{rank.port}"]


def rank_environment(rank: Rank) -> dict[str, str]:
    """Return a rank's address: without this variable SGLang binds its queues to the first
    network.
    """
    return {"SGLANG_HOST_IP": rank.address}


def rank_misuses(arguments: Mapping[str, ArgumentValue | None]) -> Iterator[Fault]:
    """Arguments with which the engine can't serve on several hosts."""
    if arguments.get("dp_size") not in (None, 1, "1"):
        yield "dp_size", "a service of several hosts can't have replicas", "leave it out"


ENGINE = Engine(
    **from_data(__file__, DATA),
    checks=(checks,),
    parser=PARSER,
    gpu_counts=PARALLEL,
    formats=SAFETENSORS,
    media_list=partial(has_media_list, first=HAS_DOMAINS),
    limits=limits,
    kv_bytes=partial(kv_bytes, DATA["kv_bytes"]),
    command=command,
    rank_environment=rank_environment,
    rank_misuses=rank_misuses,
    seen_faults=checks.seen_faults,
    template_marks=marks,
    derive=derive,
)

"""vLLM's OpenAI server, started by ``vllm serve``, as an engine, with its command line.

An image is driven by ``vllm serve`` arguments, or by variables that its own entry point turns into
arguments. Settings and rules always use arguments; only this module turns them into variables.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath

from sparkwright.catalog import ArgumentValue, Variables
from sparkwright.catalog.entries import SAFETENSORS, KvOffload
from sparkwright.engines.command_line import argument_words, has_media_list, media_words
from sparkwright.engines.engine import Command, Engine, Launch, Rank, from_data
from sparkwright.engines.tables import release
from sparkwright.engines.vllm import (
    arguments,
    derive,
    image_variables,
    limits,
    memory,
    model_checks,
    speculation_checks,
    unified_memory,
)
from sparkwright.engines.vllm.data import DATA, PARALLEL
from sparkwright.findings.user_error import Fault

#: Variable -> folder below the directory of boot caches.
CACHES: Mapping[str, str] = DATA["caches"]
_EXECUTOR = "distributed_executor_backend"
#: The address of an image that is driven by variables, unless its extra arguments change the
#: address.
_OWN = {"--host": "0.0.0.0", "--port": "8000"}
#: The first version with a list of media domains.
HAS_DOMAINS = (0, 11, 0)
#: The first version that offloads to a disk (vllm/v1/kv_offload/tiering/fs).
_HAS_TIERS = (0, 22, 0)


def command(launch: Launch) -> Command:
    """Return ``serve MODEL --served-model-name ... --uds ...`` and the recipe's arguments; no
    arguments for an image that is driven by variables.

    Boot caches come first in the environment: a recipe's own variable overrides them.
    """
    arguments: list[str] = []
    environment = launch.cache_variables(CACHES)
    if media := media_words(launch, HAS_DOMAINS):
        # An allowed domain must not redirect to a forbidden domain.
        environment["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] = "0"
    if launch.variables is None:
        arguments = ["serve", launch.model, "--served-model-name", *launch.served_names]
        arguments += [*_listening(launch, {}), *media]
        for key, value in launch.arguments.items():
            if launch.rank is None or key != _EXECUTOR:
                arguments += argument_words(key, value)
        arguments += _rank_words(launch.rank) if launch.rank else []
    else:
        environment |= _variables(launch, launch.variables)
    environment |= launch.environment
    if launch.rank:
        # A recipe's own address would be the same for all ranks.
        environment["VLLM_HOST_IP"] = launch.rank.address
    return Command(arguments, environment)


def additions(
    version: str | None, adapters: Mapping[str, str], rank: int, offload: KvOffload | None
) -> dict[str, ArgumentValue]:
    """Arguments for adapters and for an offloaded KV cache, without features that the version
    lacks.
    """
    added: dict[str, ArgumentValue] = {}
    if adapters:
        added |= {"enable_lora": True, "max_loras": len(adapters)}
        added["lora_modules"] = [f"{name}={path}" for name, path in adapters.items()]
        ranks: list[int] = DATA["max_lora_ranks"]
        fitting = [each for each in ranks if each >= rank] or ranks[-1:]
        added |= {"max_lora_rank": fitting[0]} if rank else {}
    if offload and not offload.disk:
        added["kv_offloading_size"] = offload.gib
    elif offload and release(version or "") >= _HAS_TIERS:
        added["kv_transfer_config"] = json.dumps(DATA["offload_to_disk"])
    return added


def _variables(launch: Launch, names: Variables) -> dict[str, str]:
    """The arguments as an image's variables; the extra arguments contain all other arguments."""
    result = {names.model: launch.model}
    if launch.served_names[0] != PurePosixPath(launch.model).name:
        result[names.served_name] = launch.served_names[0]
    extra: list[str] = []
    for key, value in launch.arguments.items():
        if key in names.arguments:
            result[names.arguments[key]] = str(value)
        elif (
            # The image's own variables can express this whole value.
            isinstance(value, dict)
            and set(value) == {"method", "model", "num_speculative_tokens"}
            and (key, value["method"]) == ("speculative_config", "dflash")
        ):
            result[names.drafter] = str(value["model"])
            result[names.num_speculative_tokens] = str(value["num_speculative_tokens"])
        else:
            extra += argument_words(key, value)
    extra += [
        f"--no-{flag.replace('_', '-')}" for flag in names.sets if flag not in launch.arguments
    ]
    extra += media_words(launch, HAS_DOMAINS)
    if len(launch.served_names) > 1:
        extra += ["--served-model-name", *launch.served_names]
    extra += _listening(launch, _OWN)
    if extra:
        result[names.extra_arguments] = shlex.join(extra)
    return result


def _listening(launch: Launch, defaults: Mapping[str, str]) -> list[str]:
    """Arguments of vLLM's address, without its defaults; a socket takes precedence over any
    address.
    """
    if launch.socket:
        return ["--uds", launch.socket]
    wanted = {"--host": launch.host, "--port": str(launch.port)}
    return [word for pair in wanted.items() if pair not in defaults.items() for word in pair]


def _rank_words(rank: Rank) -> list[str]:
    """Return the arguments of native multi-node serving: one process group over all hosts, without
    Ray.
    """
    arguments = ["--distributed-executor-backend", "mp", "--nnodes", str(len(rank.hosts))]
    arguments += ["--node-rank", str(rank.number)]
    arguments += ["--master-addr", rank.addresses[0], "--master-port", str(rank.port)]
    return arguments if rank.head else [*arguments, "--headless"]


def rank_environment(rank: Rank) -> dict[str, str]:
    """Return a rank's address, and a longer timeout: a first start compiles for longer than the
    default of 300 s.
    """
    return {"VLLM_HOST_IP": rank.address, "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "1800"}


def rank_misuses(arguments: Mapping[str, ArgumentValue | None]) -> Iterator[Fault]:
    """Report executors that can't serve on several hosts."""
    executor = arguments.get(_EXECUTOR)
    if executor not in (None, "mp"):
        yield _EXECUTOR, f"{executor!r}: vLLM supports only mp for several hosts", "leave it out"


ENGINE = Engine(
    **from_data(__file__, DATA),
    checks=(arguments, speculation_checks, model_checks, unified_memory),
    overhead_gib=memory.OVERHEAD_GIB,
    parser=arguments.PARSER,
    gpu_counts=PARALLEL,
    formats=SAFETENSORS,
    media_list=partial(has_media_list, first=HAS_DOMAINS),
    limits=limits.limits,
    kv_bytes=memory.kv_bytes,
    command=command,
    additions=additions,
    refused=image_variables.refused,
    read_back=image_variables.read_back,
    rank_environment=rank_environment,
    rank_misuses=rank_misuses,
    seen_faults=unified_memory.seen_faults,
    template_marks=derive.marks,
    derive=derive.derive,
)

"""What a recipe's arguments become here: what stays, what goes, and what one host has."""

from __future__ import annotations

import math
import re
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.catalog.gpus import GPUS, LEAST_SPARK_GIB, VRAM, unified
from sparkwright.engines.vllm.arguments import known_variables
from sparkwright.engines.vllm.data import PARALLEL
from sparkwright.engines.vllm.gb10 import MOST_ON_GB10
from sparkwright.engines.vllm.table import release
from sparkwright.recipes.recipe import Foreign, Options
from sparkwright.recipes.serve_arguments import expands, known_to
from sparkwright.recipes.yaml_mapping import line

#: The share of a Spark where a recipe says none.
_SHARE = 0.8
_RANKS = "ranks of a group are set where it is deployed"
_CODE = "it names code that would run in the engine, and is not in the image"
_SECRET = "a secret is no part of a recipe: it is a setting of the site"
#: Arguments that are not carried over -> why.
_LEFT_OUT = {
    "distributed_executor_backend": "vLLM's own is taken; Ray is not installed here",
    "nnodes": _RANKS, "node_rank": _RANKS, "master_addr": _RANKS, "master_port": _RANKS,
    "headless": _RANKS, "data_parallel_address": _RANKS, "data_parallel_rpc_port": _RANKS,
    "reasoning_parser_plugin": _CODE, "tool_parser_plugin": _CODE, "middleware": _CODE,
    "worker_cls": _CODE, "worker_extension_cls": _CODE, "logits_processors": _CODE,
    "lora_modules": "adapters are not mounted",
    "prompt_adapters": "adapters are not mounted",
    "hf_token": _SECRET, "ssl_keyfile": _SECRET, "ssl_certfile": _SECRET, "ssl_ca_certs": _SECRET,
    "download_dir": "models are fetched beforehand, and mounted read-only",
    "hf_config_path": "only body and drafter are mounted",
    "allowed_local_media_path": "clients would read the container's files",
    "trust_request_chat_template": "clients would run templates of their own",
    "enable_server_load_tracking": "the proxy counts requests",
    "uds": "the service listens at its port",
    "root_path": "the proxy gives requests on as they are",
}  # fmt: skip
_SECRETS = re.compile(r"(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|KEY|CREDENTIALS?)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def settled(
    foreign: Foreign, values: dict[str, ArgumentValue], model: str, vllm: str | None,
    options: Options,
) -> dict[str, ArgumentValue]:  # fmt: skip
    """The arguments that the recipe gets.

    Args:
        model: the repository that is served.
        vllm: the version that its image holds; None where nobody says it.
    """
    remarks = foreign.remarks
    found: dict[str, ArgumentValue] = {}
    for name, value in values.items():
        key, shown = f"arguments.{name}", f"{name}: {line(value)}"
        if name in _LEFT_OUT:
            hidden = name if _LEFT_OUT[name] is _SECRET else shown
            remarks.left_out(key, hidden, _LEFT_OUT[name])
        elif name == "tokenizer" and value != model:
            remarks.left_out(key, shown, "only body and drafter are mounted")
        elif name == "chat_template" and _is_file(str(value)):
            remarks.left_out(
                key, shown, "a file that the image has not, or that a mod would make",
                "the model's own template is taken",
            )  # fmt: skip
        elif name == "generation_config" and value not in ("auto", "vllm"):
            remarks.left_out(key, shown, "only body and drafter are mounted")
        elif name == "trust_remote_code" and value and not options.remote_code:
            remarks.left_out(
                key, "trust_remote_code",
                "it runs Python files of the repository, whoever may change that",
                "--allow-remote-code keeps it; a deploy then asks for a lock, and for the files "
                "to be named once they are read",
            )  # fmt: skip
        elif name != "tokenizer":
            found[name] = value
    if found.get("trust_remote_code"):
        remarks.risk(
            "arguments.trust_remote_code", "trust_remote_code is kept",
            "it runs Python files of the model's repository within the container",
            "read them at the locked commit, and name them in the model's `code`",
        )  # fmt: skip
    _parsers(foreign, values, found, vllm)
    _limits(foreign, found)
    _ranks(foreign, found, options)
    if unified(GPUS[options.gpu]):
        _share(foreign, found)
    return found


def variables(foreign: Foreign, vllm: str | None) -> dict[str, str]:
    """The environment that the recipe gets."""
    remarks = foreign.remarks
    known = known_variables()
    found: dict[str, str] = {}
    for name, value in foreign.environment.items():
        key = f"env.{name}"
        if not _NAME.fullmatch(name):
            remarks.left_out(key, line(name), "it is no name of a variable")
        elif _SECRETS.search(name.upper()):
            remarks.left_out(key, name, _SECRET)
        elif expands(value):
            remarks.left_out(
                key, f"{name}={line(value)}", "nothing of this machine is filled in",
                "write the value itself into the recipe's environment",
            )  # fmt: skip
        elif (
            vllm
            and (until := known.get(name, {}).get("until"))
            and (release(vllm) >= release(until))
        ):
            remarks.left_out(
                key, f"{name}={line(value)}", f"vLLM {until} removed it, and the image has {vllm}",
                str(known[name]["instead"]),
            )  # fmt: skip
        else:
            found[name] = value
    return found


def _is_file(template: str) -> bool:
    return "{" not in template


def _parsers(
    foreign: Foreign, values: dict[str, ArgumentValue], found: dict[str, Any], vllm: str | None
) -> None:
    """A parser that a plugin brings goes with it."""
    for name, plugin in (
        ("reasoning_parser", "reasoning_parser_plugin"),
        ("tool_call_parser", "tool_parser_plugin"),
    ):
        known = {one for table in known_to(vllm) for one in table.names.get(name, ())}
        if plugin in values and name in found and found[name] not in known:
            foreign.remarks.left_out(
                f"arguments.{name}", f"{name}: {line(found.pop(name))}",
                f"it comes with the {plugin} that was left out",
            )  # fmt: skip
            if name == "tool_call_parser":
                found.pop("enable_auto_tool_choice", None)


def _limits(foreign: Foreign, found: dict[str, Any]) -> None:
    """DFlash's two limits, which decide its budget of tokens."""
    config = found.get("speculative_config")
    if not isinstance(config, dict) or config.get("method") != "dflash":
        return
    for name, value in (("max_num_seqs", 16), ("max_num_batched_tokens", 32768)):
        if name not in found:
            found[name] = value
            foreign.remarks.changed(
                f"arguments.{name}", f"not set; here {value}",
                "without it the scheduler can compute a negative budget under DFlash",
            )  # fmt: skip


def _ranks(foreign: Foreign, found: dict[str, Any], options: Options) -> None:
    """How many GPUs it takes: as the recipe says, else as many as its size needs."""
    sizes = {name: found[name] for name in PARALLEL if isinstance(found.get(name), int)}
    wanted = math.prod(sizes.values()) if sizes else 1
    remarks = foreign.remarks
    if foreign.may_be_one and not options.cluster and 1 < wanted <= 2:
        for name, size in sizes.items():
            if size > 1:
                remarks.changed(f"arguments.{name}", f"{name}: {size}", "one host runs it alone",
                                f"{name}: {size} for two")  # fmt: skip
                del found[name]
        wanted = 1
    least = max(foreign.gpus, _by_size(foreign.vram_gib, options))
    if wanted < least:
        why = f"it needs {least} GPUs"
        if foreign.vram_gib and least > foreign.gpus:
            why = f"it needs {foreign.vram_gib:.0f} GiB, which {least} GPUs have"
        found["tensor_parallel_size"] = least // max(1, sizes.get("pipeline_parallel_size", 1))
        remarks.changed(
            "arguments.tensor_parallel_size",
            f"tensor_parallel_size: {found['tensor_parallel_size']}", why,
        )  # fmt: skip
        wanted = least
    if wanted > 1 and options.cluster:
        remarks.hardware(
            "ranks", f"{wanted} hosts ({options.gpu})", "each has one of its ranks",
            "name a cluster of as many hosts in clusters, and in the service (docs/clusters.md)",
        )  # fmt: skip
    elif wanted > 1:
        remarks.hardware(
            "min_nodes", f"{wanted} GPUs ({options.gpu})",
            "a DGX Spark has one" if unified(GPUS[options.gpu]) else "all of them in one box",
            "`sparkwright check` names it until there are as many",
        )  # fmt: skip


def ranks(arguments: dict[str, ArgumentValue]) -> dict[str, int]:
    """How a recipe is spread over a cluster's hosts; its sizes are no arguments any more."""
    found: dict[str, int] = {}
    for name, part in (("tensor_parallel_size", "tensor"), ("pipeline_parallel_size", "pipeline")):
        size = arguments.pop(name, 1)
        if isinstance(size, int) and size > 1:
            found[part] = size
    return found


def _by_size(needed: float | None, options: Options) -> int:
    """GPUs that hold this, as a power of two, which heads can be divided by."""
    if needed is None:
        return 1
    own = LEAST_SPARK_GIB * MOST_ON_GB10 if unified(GPUS[options.gpu]) else VRAM[options.gpu]
    return 1 << max(0, math.ceil(math.log2(needed / own)))


def _share(foreign: Foreign, found: dict[str, Any]) -> None:
    """A share of memory that a Spark, whose pool is one, can give."""
    written = found.get("gpu_memory_utilization")
    share = written if isinstance(written, int | float) else None
    if share is not None and share <= MOST_ON_GB10:
        return
    found["gpu_memory_utilization"] = MOST_ON_GB10 if share else _SHARE
    said = f"{share:g}" if share else "not set, so that vLLM takes 0.92"
    foreign.remarks.changed(
        "arguments.gpu_memory_utilization",
        f"{said}; here {found['gpu_memory_utilization']:g}",
        "CPU and GPU of a Spark share one pool, and it thrashes above 0.88",
    )

"""sparkrun's recipes, version 2, and what they share with version 1 (eugr/spark-vllm-docker)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.extras.imports.command_line import Command, command, filled
from sparkwright.recipes.recipe import Foreign, Options, Refused, Remarks, Text
from sparkwright.recipes.yaml_mapping import environment, line, mapping, words

_SCRIPT = "a script of the recipe's, and none is run"
#: Keys that are not carried over -> why.
LEFT_OUT = {
    "mods": "a mod is a script that changes the container before it serves, and none is run",
    "pre_exec": _SCRIPT,
    "post_exec": _SCRIPT,
    "post_commands": f"{_SCRIPT}; this one is for the controller's own shell",
    "stop_after_post": "it ends the service after scripts that are not run",
    "builder": "images are pulled, not built",
    "builder_config": "images are pulled, not built",
    "build_args": "images are pulled, not built",
    "benchmark": "`sparkwright bench` has loads of its own",
    "distribution_config": "hosts take images and models from each other by themselves",
    "runtime_config": "it is for another engine's start, or not known",
    "runtime_version": "the image's tag says which version it holds",
    "auth": "secrets are settings of the site",
}
_EXECUTOR = {
    "user": "the container's user is the image's own",
    "devices": "a container is given its GPUs and no other device",
    "cap_add": "name the one that it needs in `exceptions`, with the reason",
    "privileged": "a container is never privileged",
    "memory_limit": "gpu_memory_utilization and preflight bound the memory",
    "entrypoint": "the image's entry is `vllm`; name another one in the image's `entrypoint`",
    "auto_remove": "systemd owns the container",
    "restart_policy": "systemd owns restarts",
    "network": "the network is set by `hardening`",
    "ipc": "it is the same here",
    "gpus": "name GPUs in `services.NAME.gpus`",
    "volumes": "only body and drafter are mounted",
}
_KNOWN = {
    *("sparkrun_version", "recipe_version", "name", "description", "model", "model_revision"),
    *("runtime", "mode", "min_nodes", "max_nodes", "solo_only", "cluster_only", "container"),
    *("defaults", "env", "command", "metadata", "executor_config"),
}
_ENGINES = ("sglang", "llama-cpp", "trtllm", "atlas")
#: sparkrun's names of defaults -> vLLM's argument.
_DEFAULTS = {
    "tensor_parallel": "tensor_parallel_size",
    "pipeline_parallel": "pipeline_parallel_size",
    "data_parallel": "data_parallel_size",
}


def is_one(data: Mapping[str, Any]) -> bool:
    """Whether a file's keys are those of such a recipe."""
    return isinstance(data.get("model"), str) and bool(
        {"command", "defaults", "container", "runtime"} & set(data)
    )


def read(text: Text, data: dict[str, Any], _: Options) -> Iterator[Foreign]:
    """The one recipe of a file.

    Raises:
        Refused: for another engine's.
    """
    remarks = Remarks(text.source)
    values = {"model": data["model"], **mapping(data, "defaults")}
    written = data.get("command")
    if written:
        found = command(*filled(str(written), values), remarks)
        unused(values, found.used, remarks)
    else:
        found = Command(_generated(values), {}, frozenset(values))
    yield foreign(text, data, found, remarks)


def foreign(text: Text, data: dict[str, Any], found: Command, remarks: Remarks) -> Foreign:
    """What both versions say alike."""
    runtime = str(data.get("runtime") or "vllm")
    if runtime in _ENGINES:
        raise Refused("runtime", runtime, "this tool serves with vLLM")
    _left_out(data, remarks)
    about = mapping(data, "metadata")
    solo = data.get("solo_only") is True or data.get("max_nodes") == 1
    cluster = data.get("cluster_only") is True
    least = _number(data.get("min_nodes")) or (2 if cluster else 1)
    executor = mapping(data, "executor_config")
    name, longer = text.names
    notes = [f"{key}: {line(about[key])}" for key in ("maintainer", "category", "model_params",
             "model_dtype", "model_vram") if about.get(key)]  # fmt: skip
    return Foreign(
        name=name,
        longer_name=longer,
        title=line(about.get("description") or data.get("description") or data.get("name") or name),
        text=text,
        remarks=remarks,
        model=str(data["model"]),
        revision=str(data["model_revision"]) if data.get("model_revision") else None,
        container=str(data.get("container") or "").strip() or None,
        words=found.words,
        environment={**environment(mapping(data, "env")), **found.environment},
        gpus=1 if solo else least,
        may_be_one=solo,
        format=str(about["quantization"]) if about.get("quantization") else None,
        shm_gib=_gib(executor.get("shm_size")),
        memlock="memlock" in str(executor.get("ulimit") or ""),
        notes=notes,
    )


def unused(values: Mapping[str, Any], used: frozenset[str], remarks: Remarks) -> None:
    """Defaults that the command does not have."""
    for key, value in values.items():
        if key not in used and key not in ("model", "port", "host"):
            shown = key if key == "api_key" else f"{key}: {line(value)}"
            remarks.left_out(f"defaults.{key}", shown, "the recipe's command does not use it")


def _generated(values: Mapping[str, Any]) -> tuple[str, ...]:
    """What sparkrun starts for a recipe without a command."""
    made = [str(values["model"])]
    for key, value in values.items():
        if key == "model" or value is None or value is False:
            continue
        made.append(f"--{_DEFAULTS.get(key, key).replace('_', '-')}")
        if value is not True:
            made += [str(value)] if not isinstance(value, list) else [str(one) for one in value]
    return tuple(made)


def _left_out(data: dict[str, Any], remarks: Remarks) -> None:
    for key, value in data.items():
        if key in _KNOWN or value in (None, [], {}, False, ""):
            continue
        shown = ", ".join(map(line, words(data, key))) if isinstance(value, list) else line(value)
        remarks.left_out(key, f"{key}: {line(shown)}", LEFT_OUT.get(key, "the key is not known"))
    for key, value in mapping(data, "executor_config").items():
        if key == "shm_size" or (key == "ulimit" and "memlock" in str(value)):
            continue
        reason = _EXECUTOR.get(key, "containers are set by this tool")
        remarks.left_out(f"executor_config.{key}", f"{key}: {line(value)}", reason)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _gib(size: Any) -> float | None:
    """``10.24gb`` -> GiB, as Docker reads it; None for what it does not take."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*([kmg]?)b?", str(size or "").lower())
    if found is None or not float(found[1]):
        return None
    return float(found[1]) / {"g": 1, "m": 1024, "k": 1024**2, "": 1024**3}[found[2]]

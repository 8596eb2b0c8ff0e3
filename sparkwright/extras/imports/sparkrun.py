"""sparkrun's recipes: version 2, and version 1, which is eugr/spark-vllm-docker's."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.engines import ENGINES
from sparkwright.extras.imports.serve_command import Command, command, filled, formatted
from sparkwright.recipes.recipe import Foreign, Options, Refused, Remarks, Text, texts
from sparkwright.recipes.yaml_mapping import environment, line, mapping, positive, strings


def is_one(data: Mapping[str, Any]) -> bool:
    """Whether a file's keys are those of such a recipe."""
    keys = {"command", "defaults", "container", "runtime"}
    return isinstance(data.get("model"), str) and bool(keys & set(data))


def is_version_1(data: Mapping[str, Any]) -> bool:
    """Whether a file's keys are those of a recipe of version 1."""
    return is_one(data) and str(data.get("recipe_version", "")) == "1"


def read(text: Text, data: dict[str, Any], _: Options) -> Iterator[Foreign]:
    """Read the only recipe of a file.

    Raises:
        Refused: for another engine's.
    """
    runtime = texts()["sparkrun"]["runtimes"].get(str(data.get("runtime") or "vllm"), "")
    remarks = Remarks(text.source, runtime or "vllm")
    values = {"model": data["model"], **mapping(data, "defaults")}
    if written := data.get("command"):
        started = command(*filled(str(written), values))
        _note_unused(values, started, remarks)
    else:
        started = Command(runtime, _generated(values), {}, frozenset(values))
    yield _foreign(text, data, started, remarks)


def read_version_1(text: Text, data: dict[str, Any], _: Options) -> Iterator[Foreign]:
    """Read the only recipe of a file of version 1.

    Raises:
        Refused: without a command, and for an image that no registry has.
    """
    remarks, values = Remarks(text.source), mapping(data, "defaults")
    if not data.get("command"):
        raise Refused("command", "it has none", "version 1 has nothing else to start")
    started = command(*formatted(str(data["command"]), values))
    _note_unused(values, started, remarks)
    recipe = _foreign(text, data, started, remarks)
    if image := texts()["sparkrun"]["images"].get(recipe.container):
        remarks.note("published-image", "container", f"{recipe.container} is {image}")
    # It runs on one host as well as on two, unless it says that it needs them.
    alone = data.get("cluster_only") is not True and "min_nodes" not in data
    recipe.container, recipe.may_be_one = image or recipe.container, recipe.may_be_one or alone
    yield recipe


def _foreign(text: Text, data: dict[str, Any], started: Command, remarks: Remarks) -> Foreign:
    runtime = str(data.get("runtime") or "vllm")
    runtimes = texts()["sparkrun"]["runtimes"]
    if runtimes.get(runtime) not in ENGINES:
        known = ", ".join(name for name in runtimes if runtimes[name] in ENGINES)
        reason = "no engine of this tool's serves it"
        raise Refused("runtime", runtime, reason, f"runtimes that are imported: {known}")
    remarks.engine = started.engine
    about, executor = mapping(data, "metadata"), mapping(data, "executor_config")
    noted = texts()["sparkrun"]["notes"]
    _note_left_out(data, executor, remarks)
    solo = data.get("solo_only") is True or data.get("max_nodes") == 1
    least = positive(data.get("min_nodes")) or (2 if data.get("cluster_only") is True else 1)
    name, longer = text.names
    return Foreign(
        name=name,
        longer_name=longer,
        title=line(about.get("description") or data.get("description") or data.get("name") or name),
        text=text,
        remarks=remarks,
        model=str(data["model"]),
        revision=str(data["model_revision"]) if data.get("model_revision") else None,
        container=str(data.get("container") or "").strip() or None,
        arguments=started.arguments,
        environment={**environment(mapping(data, "env")), **started.environment},
        gpus=1 if solo else least,
        may_be_one=solo,
        format=str(about["quantization"]) if about.get("quantization") else None,
        shm_gib=_gib(executor.get("shm_size")),
        memlock="memlock" in str(executor.get("ulimit") or ""),
        notes=[f"{key}: {line(about[key])}" for key in noted if about.get(key)],
        mods=tuple(strings(data, "mods")),
    )


def _generated(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The words that sparkrun starts a recipe without a command with."""
    names = texts()["sparkrun"]["defaults"]
    made = ["--model", str(values["model"])]
    for key, value in values.items():
        if key == "model" or value is None or value is False:
            continue
        made.append(f"--{names.get(key, key).replace('_', '-')}")
        if value is not True:
            made += map(str, value if isinstance(value, list) else [value])
    return tuple(made)


def _note_unused(values: Mapping[str, Any], started: Command, remarks: Remarks) -> None:
    """Note the defaults that the command does not have."""
    for key in values:
        if key in {*started.used, "model", "port", "host"}:
            continue
        shown = key if key == "api_key" else f"{key}: {line(values[key])}"
        remarks.note("default-unused", f"defaults.{key}", shown)


def _note_left_out(data: dict[str, Any], executor: dict[str, Any], remarks: Remarks) -> None:
    tables = texts()["sparkrun"]
    for key, value in data.items():
        if key not in tables["known"] and value not in (None, [], {}, False, ""):
            shown = line(", ".join(map(line, value)) if isinstance(value, list) else line(value))
            reason = tables["left_out"].get(key, "the key is not known")
            remarks.left_out(key, f"{key}: {shown}", reason)
    for key, value in executor.items():
        if key != "shm_size" and (key != "ulimit" or "memlock" not in str(value)):
            reason = tables["executor"].get(key, "containers are set by this tool")
            remarks.left_out(f"executor_config.{key}", f"{key}: {line(value)}", reason)


def _gib(size: Any) -> float | None:
    """``10.24gb`` -> GiB, as Docker reads it; None for what it does not take."""
    amount = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*([kmg]?)b?", str(size or "").lower())
    if amount is None or not float(amount[1]):
        return None
    return float(amount[1]) / {"g": 1, "m": 1024, "k": 1024**2, "": 1024**3}[amount[2]]

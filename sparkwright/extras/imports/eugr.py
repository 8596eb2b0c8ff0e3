"""Recipes of eugr/spark-vllm-docker, version 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sparkwright.extras.imports import sparkrun
from sparkwright.extras.imports.command_line import command, formatted
from sparkwright.recipes.recipe import Foreign, Options, Refused, Remarks, Text
from sparkwright.recipes.yaml_mapping import mapping

_NIGHTLY = "ghcr.io/spark-arena/dgx-vllm-eugr-nightly"
#: Local names that its builder gives -> the published image that sparkrun takes for them.
ALIASES = {
    "vllm-node": f"{_NIGHTLY}:latest",
    "vllm-node-tf5": f"{_NIGHTLY}-tf5:latest",
    "vllm-node-b12x": "eugr/spark-vllm-b12x:latest",  # as vLLM's recipes name it
}


def is_one(data: Mapping[str, Any]) -> bool:
    """Whether a file's keys are those of such a recipe."""
    return sparkrun.is_one(data) and str(data.get("recipe_version", "")) == "1"


def read(text: Text, data: dict[str, Any], options: Options) -> Iterator[Foreign]:
    """The one recipe of a file.

    Raises:
        Refused: without a command, and for an image that no registry has.
    """
    remarks = Remarks(text.source)
    if not data.get("command"):
        raise Refused("command", "it has none", "version 1 has nothing else to start")
    values = mapping(data, "defaults")
    found = command(*formatted(str(data["command"]), values), remarks)
    sparkrun.unused(values, found.used, remarks)
    one = sparkrun.foreign(text, data, found, remarks)
    local = one.container or ""
    if local in ALIASES:
        remarks.changed(
            "container", f"{local} is {ALIASES[local]}",
            "the recipe names an image that its own project builds; this one is published for it",
        )  # fmt: skip
    # It runs on one host as well as on two, unless it says that it needs them.
    alone = data.get("cluster_only") is not True and "min_nodes" not in data
    yield replace(
        one, container=ALIASES.get(local, one.container), may_be_one=one.may_be_one or alone
    )

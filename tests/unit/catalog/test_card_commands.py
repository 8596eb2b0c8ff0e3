"""Rendered services against the cards' own commands, word for word in meaning."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.settings import parse_settings
from sparkwright.plan.container import BOOT_CACHES, BOOT_CACHES_MOUNT
from sparkwright.plan.plan import plan_host
from sparkwright.plan.release import render_release
from tests.unit import builders

CARDS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cards/commands.yaml").read_text()
)
#: What we say on purpose and the cards do not: catalog/DEVIATIONS.md.
OURS = {"--host", "--port", "--served-model-name"}
#: The proxy listens where the card has vLLM listen, and vLLM where only the proxy reaches it.
BEHIND = {"--host": ["127.0.0.1"], "--port": ["18000"]}


def _flags(words: list[str]) -> dict[str, list[str]]:
    """``--flag value value`` -> flag and its values; JSON in a form that compares by meaning."""
    found: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            found[flag] = []
        else:
            text = json.dumps(json.loads(word), sort_keys=True) if word.startswith("{") else word
            found.setdefault(flag, []).append(_number(text))
    return found


def _number(text: str) -> str:
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _card(entry: dict[str, Any]) -> dict[str, Any]:
    """Environment, command and the container's own settings of a card."""
    if "compose" in entry:
        compose = entry["compose"]
        return {
            "environment": dict(pair.split("=", 1) for pair in compose["environment"]),
            "command": compose["command"],
            "mounts": {volume.split(":")[1] for volume in compose["volumes"]},
            "shm": None,
            "memlock": False,
        }
    words = shlex.split(entry["run"])[2:]
    environment, mounts, shm, memlock = {}, set(), None, False
    while words:
        word = words.pop(0)
        if word == "-e":
            name, value = words.pop(0).split("=", 1)
            environment[name] = value
        elif word == "-v":
            mounts.add(words.pop(0).split(":")[1])
        elif word.startswith("--shm-size="):
            shm = word.split("=")[1]
        elif word == "--ulimit":
            memlock = words.pop(0) == "memlock=-1:-1"
        elif word in ("--name", "--restart", "--gpus", "--ipc", "--network", "--entrypoint"):
            words.pop(0)
        elif not word.startswith("-"):
            break  # the image
    return {
        "environment": environment, "command": words, "mounts": mounts,
        "shm": shm, "memlock": memlock,
    }  # fmt: skip


def _ours(entry: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    service = {"s": {"recipe": entry["recipe"], "image_tag": entry["tag"]}}
    settings = parse_settings("spark-1", {"services": service}, builders.origin)
    plan = plan_host("spark-1", settings, builders.catalog(), builders.origin)
    release = render_release(plan, plan.services[0], builders.resolution(plan))
    rendered: dict[str, Any] = yaml.safe_load(release.compose)["services"]["vllm"]
    return rendered, {model.mount for model in plan.services[0].models}


@pytest.mark.parametrize("entry", CARDS, ids=[entry["recipe"] for entry in CARDS])
def test_a_service_is_what_its_card_says(entry: dict[str, Any]) -> None:
    card = _card(entry)
    rendered, mounts = _ours(entry)
    environment = dict(rendered.get("environment", {}))
    for name in BOOT_CACHES:  # the cards' containers lose theirs at each start
        assert environment.pop(name).startswith(BOOT_CACHES_MOUNT)
    if "DFLASH_DRAFTER" in card["environment"]:
        assert environment.pop("DFLASH_DRAFTER") == "/models/drafter"
        assert card["environment"].pop("DFLASH_DRAFTER") == "z-lab/Qwen3.5-27B-DFlash"
        mounts.discard("/models/drafter")
    card["environment"].pop("VLLM_API_KEY", None)
    if "MODEL_PATH" in environment:  # its entry point would trust remote code by itself
        words = "--no-trust-remote-code --host 127.0.0.1 --port 18000"
        assert environment.pop("EXTRA_ARGS") == words
    assert {name: _number(value) for name, value in environment.items()} == {
        name: _number(value) for name, value in card["environment"].items()
    }
    theirs, own = _flags(card["command"]), _flags(rendered.get("command", []))
    # No code of a model's repository is run: catalog/DEVIATIONS.md.
    theirs.pop("--trust-remote-code", None)
    assert "--trust-remote-code" not in own
    for flag in OURS - set(theirs):
        own.pop(flag, None)
    for flag, value in BEHIND.items():
        assert own.pop(flag, value) == value
        theirs.pop(flag, None)
    if entry.get("open"):
        own = {flag: values for flag, values in own.items() if flag in theirs}
    assert own == theirs
    assert mounts == card["mounts"]
    assert rendered.get("shm_size") == (card["shm"] and card["shm"].replace("g", "gb"))
    assert (rendered.get("ulimits") == {"memlock": -1}) == card["memlock"]
    assert rendered["ipc"] == rendered["network_mode"] == "host"


def test_every_recipe_with_a_command_of_its_own_is_compared() -> None:
    """The others are sized by this project or given in words, and say so in their source."""
    rest = set(builders.catalog().recipes) - {entry["recipe"] for entry in CARDS}
    assert rest == {
        "gemma4-26b-a4b-stock",
        "qwen35-4b-rtx-16gb",
        "qwen36-27b-mtp-nvfp4kv",
        "qwen36-27b-nvfp4-dflash-fp8",
        "qwen36-27b-xs-dflash-fp8",
        "qwen36-35b-a3b-heretic-dflash-rtx-pro-6000",
        "qwen36-35b-a3b-heretic-dflash-rtx5090",
        "qwen36-35b-a3b-heretic-omni-v1.2",
        "qwen36-35b-a3b-heretic-omni-v2",
    }

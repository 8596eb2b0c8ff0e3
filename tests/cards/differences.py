"""Differences between a rendered service and the command of its card, key by key."""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.config.parse import parse_settings
from sparkwright.plan.plan import plan_host
from sparkwright.plan.service import render_service
from tests.cards.read import HERE
from tests.libyaml import safe_load
from tests.unit import builders

#: Value of a key that one side lacks.
ABSENT = "(none)"
COMMANDS: list[dict[str, Any]] = safe_load((HERE / "commands.yaml").read_text(encoding="utf-8"))
_ROUND = {"--net": "--network"}


@dataclass(frozen=True)
class Difference:
    """A key of the container with different values on both sides."""

    key: str
    card: str
    here: str


def of_card(entry: Mapping[str, Any]) -> dict[str, str]:
    """Every setting of a card's command, by the same keys as in ``of_service``."""
    if "as" in entry:
        (other,) = [command for command in COMMANDS if command["recipe"] == entry["as"]]
        result = of_card(other)
    elif "compose" in entry:
        result = _of_compose(entry["compose"])
    else:
        result = _of_run(shlex.split(entry["run"]))
    changed: dict[str, str] = entry.get("with", {})
    return result | changed


def of_service(recipe: str, tag: str) -> dict[str, str]:
    """Every setting of the service that the recipe renders on a tag."""
    services = {"services": {"s": {"recipe": recipe, "image_tag": tag}}}
    settings = parse_settings("spark-1", services, builders.origin)
    plan = plan_host("spark-1", settings, builders.catalog(), builders.origin)
    release = render_service(plan, plan.services[0], builders.resolution(plan))
    rendered: dict[str, Any] = safe_load(release.compose)["services"]["engine"]
    return _of_compose(rendered)


def differences(card: Mapping[str, str], here: Mapping[str, str]) -> Iterator[Difference]:
    """Keys whose values differ."""
    for key in sorted({*card, *here}):
        item, other = card.get(key, ABSENT), here.get(key, ABSENT)
        if item != other:
            yield Difference(key, item, other)


def _of_run(arguments: list[str]) -> dict[str, str]:
    assert arguments[:2] == ["docker", "run"]
    result: dict[str, str] = {}
    arguments = arguments[2:]
    while arguments:
        word, _, value = arguments.pop(0).partition("=")
        word = _ROUND.get(word, word)
        if word == "-d":
            continue
        if word == "-e":
            name, _, set_to = arguments.pop(0).partition("=")
            result[f"environment.{name}"] = _number(set_to)
        elif word == "-v":
            result |= _volume(arguments.pop(0).split(":"))
        elif word == "--ulimit":
            result["ulimits"] = (value or arguments.pop(0)).split(":")[0]
        elif word.startswith("-"):
            value = value or arguments.pop(0)
            key = {"--name": "container_name", "--network": "network_mode"}.get(word, word[2:])
            result[key] = value
        else:
            result["image"] = word
            return result | _of_command(arguments)
    raise ValueError("a command without an image")


def _of_compose(service: Mapping[str, Any]) -> dict[str, str]:
    result: dict[str, str] = {"gpus": "all"}
    for key, value in service.items():
        if key == "environment":
            pairs = value.items() if isinstance(value, dict) else (v.split("=", 1) for v in value)
            result |= {f"environment.{name}": _number(str(text)) for name, text in pairs}
        elif key == "volumes":
            for volume in value:
                result |= _volume(volume.split(":") if isinstance(volume, str) else [
                    volume["source"], volume["target"], "ro" if volume.get("read_only") else "rw"
                ])  # fmt: skip
        elif key == "command":
            result |= _of_command(value)
        elif key == "ulimits":
            result["ulimits"] = ",".join(f"{name}={limit}" for name, limit in value.items())
        elif key == "shm_size":
            result["shm-size"] = str(value).removesuffix("b")
        elif key != "deploy":
            result[key] = value if isinstance(value, str) else json.dumps(value)
    return result


def _volume(parts: list[str]) -> dict[str, str]:
    source, target, *mode = parts
    return {f"volume {target}": source, f"volume {target}, mode": (mode or ["rw"])[0]}


def _of_command(arguments: list[str]) -> dict[str, str]:
    """Values by flag of ``--flag value value``; JSON is normalized for the comparison."""
    result: dict[str, list[str]] = {}
    flag = "command"
    for word in map(str, arguments):
        if word.startswith("--"):
            flag = word
            result[flag] = []
        else:
            text = json.dumps(json.loads(word), sort_keys=True) if word.startswith("{") else word
            result.setdefault(flag, []).append(_number(text))
    return {name: " ".join(values) for name, values in result.items()}


def _number(text: str) -> str:
    try:
        return f"{float(text):g}"
    except ValueError:
        return text

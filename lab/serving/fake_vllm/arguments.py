"""The command line of `vllm`, parsed as the real parser of its version does.

Differences of the real parser from plain argparse: underscores for dashes in names, `--config
FILE`, JSON arguments given key by key (`--speculative-config.method ngram`), and `-O3`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .config_file import arguments_from
from .table import Table
from .values import READERS

COMMANDS = ["chat", "complete", "serve", "launch", "bench", "collect-env", "run-batch"]


def parse(arguments: list[str], table: Table) -> argparse.Namespace:
    """The namespace of `vllm WORDS`.

    Refused arguments end the program with usage, message and exit status 2, as argparse does;
    `-h` and `-v` end it with 0.
    """
    parser = argparse.ArgumentParser(
        prog="vllm", description=f"vLLM CLI (fake for vLLM {table.version}: no model)"
    )
    parser.add_argument(
        "-v",
        "--version",
        action="version",
        version=f"{table.version}+fake (a fake for vLLM: no model is computed)",
    )
    commands = parser.add_subparsers(
        dest="subparser", metavar="{" + ",".join(COMMANDS) + "}", required=False
    )
    serve = commands.add_parser("serve", usage="vllm serve [model_tag] [options]")
    for option in table.options:
        _add(serve, option)
    return parser.parse_args(_plain_words(arguments))


def given(namespace: argparse.Namespace, table: Table) -> dict[str, Any]:
    """The arguments that differ from their default, in the form of vLLM's log."""
    defaults = {option["dest"]: option.get("default") for option in table.options}
    return {
        name: value
        for name, value in vars(namespace).items()
        if name in defaults and value != defaults[name]
    }


def _add(parser: argparse.ArgumentParser, option: dict[str, Any]) -> None:
    action = option["action"]
    if action == "HelpAction":
        return
    settings: dict[str, Any] = {"default": option.get("default"), "help": argparse.SUPPRESS}
    if not option["flags"]:
        parser.add_argument(option["dest"], nargs="?", type=str, default=None)
        return
    settings["dest"] = option["dest"]
    if action == "BooleanOptionalAction":
        names = [name for name in option["flags"] if not name.startswith("--no-")]
        parser.add_argument(*names, action=argparse.BooleanOptionalAction, **settings)
        return
    if action == "StoreTrueAction":
        parser.add_argument(*option["flags"], action="store_true", **settings)
        return
    for key in ("nargs", "choices"):
        if key in option:
            settings[key] = option[key]
    if "type" in option:
        settings["type"] = READERS[option["type"]]
    settings["action"] = "append" if action == "AppendAction" else "store"
    parser.add_argument(*option["flags"], **settings)


def _plain_words(arguments: list[str]) -> list[str]:
    """The command line with everything resolved that argparse does not know."""
    return _join_dotted(_dashes(_with_config(arguments)))


def _with_config(arguments: list[str]) -> list[str]:
    if "--config" not in arguments[:-1]:
        return arguments
    at = arguments.index("--config")
    rest = arguments[1:at] + arguments[at + 2 :]
    from_file = arguments_from(arguments[at + 1])
    if rest and not rest[0].startswith("-"):
        # The model of the command line wins, and stays the first word.
        own = from_file if not from_file or from_file[0].startswith("-") else from_file[1:]
        return [arguments[0], rest[0], *own, *rest[1:]]
    return [arguments[0], *from_file, *rest]


def _dashes(arguments: list[str]) -> list[str]:
    result: list[str] = []
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            head, dot, keys = name.partition(".")
            result.append(head.replace("_", "-") + dot + keys + equals + value)
        elif word.startswith("-O") and word != "-O":
            result += ["--optimization-level", word[2:].removeprefix("=")]
        else:
            result.append("--optimization-level" if word == "-O" else word)
    return result


def _join_dotted(arguments: list[str]) -> list[str]:
    """Collect `--name.key value` and `--name.key=value` into one `--name {JSON}` each."""
    rest: list[str] = []
    collected: dict[str, dict[str, Any]] = {}
    queue = iter(arguments)
    for word in queue:
        name, equals, value = word.partition("=")
        if not word.startswith("--") or "." not in name:
            rest.append(word)
            continue
        head, _, path = name.partition(".")
        _insert(
            collected.setdefault(head, {}), path.split("."), value if equals else next(queue, "")
        )
    for head, mapping in collected.items():
        if head in rest[:-1]:
            # Keys given separately override the JSON given at once.
            at = rest.index(head) + 1
            try:
                rest[at] = json.dumps(json.loads(rest[at]) | mapping)
            except (ValueError, TypeError):
                continue
        else:
            rest += [head, json.dumps(mapping)]
    return rest


def _insert(mapping: dict[str, Any], keys: list[str], text: str) -> None:
    for key in keys[:-1]:
        mapping = mapping.setdefault(key, {})
    last = keys[-1]
    if last.endswith("+"):
        mapping.setdefault(last[:-1], []).extend(_value(item) for item in text.split(","))
    else:
        mapping[last] = _value(text)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

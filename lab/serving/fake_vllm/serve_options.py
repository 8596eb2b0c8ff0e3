"""The command line of `vllm`, parsed as the real parser of its version does.

Differences of the real parser from plain argparse: underscores for dashes in names, and `-O3`. The
real parser also takes `--config FILE` and JSON arguments key by key, which no caller here writes.
"""

import argparse
from typing import Any

from .option_table import Table
from .option_values import READERS

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
    return parser.parse_args(_dashes(arguments))


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


def _dashes(arguments: list[str]) -> list[str]:
    result: list[str] = []
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            result.append(name.replace("_", "-") + equals + value)
        elif word.startswith("-O") and word != "-O":
            result += ["--optimization-level", word[2:].removeprefix("=")]
        else:
            result.append("--optimization-level" if word == "-O" else word)
    return result

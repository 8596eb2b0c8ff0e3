"""Conversion of variables into arguments, for an image that is driven by variables.

Rules, plan and endpoints use arguments. A variable of a site becomes an argument here; a variable
that repeats a setting is refused.
"""

from collections.abc import Iterator, Mapping

from sparkwright.catalog import ArgumentValue, Variables
from sparkwright.engines.command_line import read_words, split
from sparkwright.engines.vllm.arguments import PARSER
from sparkwright.findings.user_error import Fault


def read_back(
    names: Variables,
    arguments: dict[str, ArgumentValue | None],
    environment: dict[str, str | None],
    origins: dict[str, str],
) -> None:
    """Move variables that stand for an argument out of the environment.

    The variable takes precedence, as in the image's entry point.
    """
    # An empty variable counts as not set, as in a shell.
    for argument, variable in names.arguments.items():
        if value := environment.pop(variable, None):
            arguments[argument] = _scalar(value)
            origins[f"argument.{argument}"] = origins[f"environment.{variable}"]
    tokens = environment.pop(names.num_speculative_tokens, None)
    config = arguments.get("speculative_config")
    if tokens and isinstance(config, dict):
        arguments["speculative_config"] = {**config, "num_speculative_tokens": _scalar(tokens)}
        origins["argument.speculative_config"] = origins[
            f"environment.{names.num_speculative_tokens}"
        ]


def refused(names: Variables, environment: Mapping[str, str]) -> Iterator[Fault]:
    """Variables with an effect that plan, endpoints and rules would not show."""
    for variable, remedy in (
        (names.model, "leave the variable out: another body needs another recipe"),
        (names.drafter, "leave the variable out: sparkwright mounts the recipe's drafter"),
        (names.served_name, f"served_names: [{environment.get(names.served_name)!r}]"),
        (names.extra_arguments, _remedy(environment.get(names.extra_arguments) or "")),
    ):
        if environment.get(variable) is not None:
            yield variable, f"sparkwright sets {variable} from the service's settings", remedy


def _scalar(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _remedy(extra: str) -> str:
    """Describe extra arguments as settings."""
    lines = []
    for name, values in read_words(split(extra)).items():
        if own := PARSER.own_setting(name):
            lines.append(f"{own} instead of --{name.replace('_', '-')}")
        elif not values:
            lines.append(f"arguments: {name.removeprefix('no_')}: {not name.startswith('no_')}")
        else:
            shown = repr(_scalar(values[0])) if len(values) == 1 else f"[{', '.join(values)}]"
            lines.append(f"arguments: {name}: {shown}")
    return "; ".join(lines) or "write vLLM's arguments into arguments"

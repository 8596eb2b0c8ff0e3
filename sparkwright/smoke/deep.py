"""What a service has to be able to do, by its plan and the catalog: the deep smoke test's request.

Pure: which checks have no reason to be asked, and why, is decided here and tested without a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sparkwright.catalog import ArgumentValue, Catalog
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.release import Release
from sparkwright.rules.model import THINKING_TOKENS
from sparkwright.smoke import smoke_request

#: Tokens that the long prompts have at least; the checks are named by them.
LONG = {"long-2k": 2048, "long-16k": 16384}
#: What the checks have together beyond a deadline of one answer each: for reading and writing many
#: tokens, and a minute for everything around them.
_CHECKS = 16
_LONG_SECONDS = 400


@dataclass(frozen=True)
class DeepRequest:
    """What the host's program is told of one service beyond the short test's request.

    Attributes:
        tool_parser, reasoning_parser: as the recipe names them.
        thinking_tokens: budget of an answer that may think first.
        max_num_seqs: requests that the engine serves at once; None where the plan leaves it open.
        context: tokens; None where the plan leaves it to the server, which is asked then.
        prefix_caching: None where the plan leaves it to vLLM's default.
        skip: check -> why this service gives no reason for it.
    """

    tool_parser: str | None
    reasoning_parser: str | None
    thinking_tokens: int
    max_num_seqs: int | None
    context: int | None
    prefix_caching: bool | None
    skip: Mapping[str, str]


def deep_request(release: Release, catalog: Catalog) -> dict[str, Any]:
    """What the host's program needs to know of a service, as plain data."""
    return {
        **smoke_request(release, warm_ups=0),
        **asdict(abilities(release.service, catalog)),
    }


def abilities(service: ServicePlan, catalog: Catalog) -> DeepRequest:
    """What a service's plan and its model's entry say that it can do."""
    arguments = dict(service.arguments)
    caching = arguments.get("enable_prefix_caching")
    return DeepRequest(
        tool_parser=_text(arguments.get("tool_call_parser")),
        reasoning_parser=_text(arguments.get("reasoning_parser")),
        thinking_tokens=max(THINKING_TOKENS, service.smoke.max_tokens),
        max_num_seqs=_whole(arguments.get("max_num_seqs")),
        context=_whole(arguments.get("max_model_len")),
        prefix_caching=caching if isinstance(caching, bool) else None,
        skip=_skipped(service, arguments, catalog),
    )


def deep_seconds(request: Mapping[str, Any]) -> int:
    """How long a service's checks take at most: the boot, and every check's deadline."""
    answers = _CHECKS * int(request["first_answer_seconds"]) + _LONG_SECONDS
    tokens = int(request["thinking_tokens"]) // 2 + 13 * int(request["max_num_seqs"] or 0)
    return int(request["boot_seconds"]) + answers + tokens + 10 * len(request["served_names"])


def _skipped(
    service: ServicePlan, arguments: Mapping[str, ArgumentValue], catalog: Catalog
) -> dict[str, str]:
    model = catalog.models[service.body.name]
    skip: dict[str, str] = {}
    thinks = None
    if "thinking" not in model.capabilities:
        thinks = f"{model.name} does not think"
    elif not arguments.get("reasoning_parser"):
        thinks = "no reasoning_parser: thoughts would stand in the content"
    if thinks:
        skip |= {"thinking-off": thinks, "thinking-on": thinks}
    if "tools" not in model.capabilities:
        skip["tools"] = f"{model.name} calls no tools"
    elif not (arguments.get("enable_auto_tool_choice") and arguments.get("tool_call_parser")):
        skip["tools"] = "no enable_auto_tool_choice with a tool_call_parser"
    if "image" not in model.capabilities:
        skip["image"] = f"{model.name} sees nothing"
    elif off := _blindfold(arguments):
        skip["image"] = f"{off}: served without sight"
    context = _whole(arguments.get("max_model_len"))
    for name, tokens in LONG.items():
        # The prompt is a little longer than its name says, and the answer needs room too.
        if context is not None and context < tokens * 1.2 + 512:
            skip[name] = f"a context of {context} tokens has no room for it"
    if arguments.get("enable_prefix_caching") is False:
        skip["prefix-cache"] = "prefix caching is off"
    if "speculative_config" not in arguments:
        skip["speculation"] = "no speculative_config"
    if _whole(arguments.get("max_num_seqs")) is None:
        skip["concurrency"] = "no max_num_seqs: how many are served at once is left to vLLM"
    return skip


def _blindfold(arguments: Mapping[str, ArgumentValue]) -> str | None:
    """The argument by which a model that sees is served without sight."""
    if arguments.get("language_model_only") is True:
        return "language_model_only"
    limits = arguments.get("limit_mm_per_prompt")
    if isinstance(limits, dict) and limits.get("image") == 0:
        return "limit_mm_per_prompt of no image"
    return None


def _whole(value: ArgumentValue | None) -> int | None:
    """A positive whole number; None for -1, ``auto`` and sizes with a suffix, which vLLM reads."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _text(value: ArgumentValue | None) -> str | None:
    return value if isinstance(value, str) else None

"""Request of the deep smoke test: required abilities of a service, by its plan and the catalog.

This module does no I/O: it decides which checks do not apply, each with the reason.
"""

from dataclasses import replace

from sparkwright.catalog import Catalog
from sparkwright.config.settings import THINKING_TOKENS
from sparkwright.engines import engine
from sparkwright.engines.engine import Limits
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke.client import DeepRequest
from sparkwright.plan.plan import ServicePlan

#: Checks of features that only the recipe and the catalog promise.
_PROMISED = (
    *("thinking-off", "thinking-on", "tools", "image", "prefix-cache", "concurrency"),
    *("long-2k", "long-16k"),
)
#: Checks of a model that writes text.
_OF_TEXT = (*_PROMISED, "chat", "completion", "stream", "json-schema", "context-limit")
#: Number of checks that may each take the deadline of one answer; and seconds for checks with many
#: tokens, including one minute for all other work.
_CHECKS = 16
_LONG_SECONDS = 400


def deep_request(service: ServicePlan, gate: SmokeRequest, catalog: Catalog) -> DeepRequest:
    """Request of a service's deep test, by the service's plan and the model's entry."""
    limits = engine(service.engine).limits(dict(service.arguments))
    skip = _skipped(service, limits, catalog)
    return _request(gate, limits, skip, max(THINKING_TOKENS, service.settings.smoke.max_tokens))


def unplanned_request(gate: SmokeRequest) -> DeepRequest:
    """Return the deep test of a service without a valid plan, from the release's record."""
    why = "the recipe's features are unknown without a valid plan"
    return _request(gate, Limits(), dict.fromkeys(_PROMISED, why), THINKING_TOKENS)


def _request(
    gate: SmokeRequest, limits: Limits, skip: dict[str, str], thinking_tokens: int
) -> DeepRequest:
    own = engine(gate.engine)
    if "chat" not in gate.routes and gate.routes:
        # The check ``aliases`` stays: it sends requests of the kinds that the model serves.
        skip |= dict.fromkeys(_OF_TEXT, f"the model serves only {', '.join(gate.routes)}")
    if not gate.speculates:
        skip["speculation"] = "the release has no drafter"
    return DeepRequest(
        **vars(replace(gate, warm_ups=0)),
        tool_parser=limits.tools,
        thinking_tokens=thinking_tokens,
        max_num_seqs=limits.sequences,
        context=limits.context or None,
        prefix_caching=limits.caching,
        skip=skip,
        guarded=own.routes.guarded,
        tokenizer=own.probes.tokenizer,
        tokenized=own.probes.tokenized,
        context_errors=tuple(own.probes.context_errors),
    )


def deep_seconds(request: DeepRequest) -> int:
    """Longest time of a service's checks: the boot, and every check's deadline."""
    answers = _CHECKS * request.first_answer_seconds + _LONG_SECONDS
    tokens = request.thinking_tokens // 2 + 13 * (request.max_num_seqs or 0)
    return request.boot_seconds + answers + tokens + 10 * len(request.served_names)


def _skipped(service: ServicePlan, limits: Limits, catalog: Catalog) -> dict[str, str]:
    model = catalog.models[service.body.name]
    skip: dict[str, str] = {}
    thinks = None
    if "thinking" not in model.capabilities:
        thinks = f"{model.name} has no reasoning"
    elif not limits.reasoning:
        thinks = "without reasoning_parser, reasoning is in the content"
    if thinks:
        skip |= {"thinking-off": thinks, "thinking-on": thinks}
    elif "thinking-only" in model.capabilities:
        skip["thinking-off"] = f"{model.name} thinks before every answer"
    if "tools" not in model.capabilities:
        skip["tools"] = f"{model.name} has no tool calling"
    elif limits.tools is None:
        skip["tools"] = "enable_auto_tool_choice and tool_call_parser are not both set"
    if "image" not in model.capabilities:
        skip["image"] = f"{model.name} has no vision"
    elif limits.blind:
        skip["image"] = f"{limits.blind}: the model is served without vision"
    if limits.caching is False:
        skip["prefix-cache"] = "prefix caching is off"
    if limits.sequences is None:
        skip["concurrency"] = "max_num_seqs is not set: the engine limits simultaneous requests"
    return skip

"""The model: what it is quantized with, what it can do, and whether it works at all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.facts import Context
from sparkwright.config.settings import THINKING_TOKENS
from sparkwright.engines.vllm.architectures import architectures, version_with
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: What --quantization may be for a format of weights.
QUANTIZATION = {
    "modelopt": ("modelopt", "modelopt_fp4"),
    "compressed-tensors": ("compressed-tensors",),
    "fp8": ("fp8",),
    "awq": ("awq", "auto_awq", "awq_marlin"),
    "gptq": ("gptq", "auto_gptq", "gptq_marlin"),
    "autoround": ("inc", "auto-round"),
    "mxfp4": ("mxfp4", "gpt_oss_mxfp4"),
    "bf16": (),
}
#: Families and the parsers that their cards serve them with: (tool calls, reasoning).
PARSERS = {
    "gemma-4": ("gemma4", "gemma4"),
    "qwen3.5": ("qwen3_coder", "qwen3"),
    "qwen3.6": ("qwen3_coder", "qwen3"),
}


@check("quantization-format")
def _quantization(context: Context) -> Iterator[Symptom]:
    flag, weights = context.arguments.get("quantization"), context.body.format
    if flag is None or weights is None:
        return
    if flag not in QUANTIZATION[weights]:
        right = QUANTIZATION[weights]
        yield Symptom(
            f"{flag!r} for {context.body.name}, whose weights are {weights}",
            key="arguments.quantization",
            remedy=f"quantization: {right[0]}" if right else "leave it out",
            source=context.body.source,
        )


@check("model-works")
def _works(context: Context) -> Iterator[Symptom]:
    for model in filter(None, (context.body, context.drafter)):
        if model.status == "fails":
            yield Symptom(
                f"{model.repository} does not work",
                key="recipe",
                remedy="another model of the catalog",
                reason=model.reason or "",
                source=model.source,
            )
        elif model.status == "expected":
            yield Symptom(
                f"{model.repository} has not been tried yet",
                key="recipe",
                remedy="try it on one host first",
                reason=model.reason or "",
                source=model.source,
                severity=Severity.WARNING,
            )

    if context.recipe.status == "unproven":
        yield Symptom(
            f"{context.recipe.name} was imported, and has not been run with this tool yet",
            key="recipe",
            remedy="try it on one host first; then write its status: works",
            reason="arguments that one image takes can fail in another, minutes after the start",
            source=context.recipe.source,
            severity=Severity.WARNING,
        )


@check("model-architecture")
def _architecture(context: Context) -> Iterator[Symptom]:
    name, vllm = context.body.architecture, context.version
    if name is None or vllm is None:
        return
    listed = version_with(vllm)
    if name in architectures(listed):
        return
    tags = context.image.tags.items()
    others = [
        tag for tag, data in tags if data.vllm and name in architectures(version_with(data.vllm))
    ]
    yield Symptom(
        f"vLLM {listed} has no implementation of {name}, which {context.body.repository} names",
        key="arguments",
        remedy=f"image_tag: {' or '.join(others)}"
        if others
        else "a newer image, or another model; vLLM "
        "tries transformers' own implementation where that has one: silence this once it answers",
        severity=None if listed == vllm else Severity.WARNING,
    )


@check("context-limit")
def _context(context: Context) -> Iterator[Symptom]:
    length, limit = context.number("max_model_len"), context.body.context
    if length is None or limit is None or length <= limit:
        return
    allowed = context.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
    yield Symptom(
        f"{length:g} tokens for a model made for {limit}",
        key="arguments.max_model_len",
        remedy=f"max_model_len: {limit}",
        severity=Severity.WARNING if allowed else None,
    )


@check("parser-family")
def _parsers(context: Context) -> Iterator[Symptom]:
    for prefix, (tools, reasoning) in PARSERS.items():
        if not context.body.family.startswith(prefix):
            continue
        for name, right in (("tool_call_parser", tools), ("reasoning_parser", reasoning)):
            value = context.arguments.get(name)
            if value is not None and value != right:
                yield Symptom(
                    f"{value!r} for {context.body.name}",
                    key=f"arguments.{name}",
                    remedy=f"{name}: {right}",
                )


@check("tool-parser")
def _tool_choice(context: Context) -> Iterator[Symptom]:
    if context.value("enable_auto_tool_choice") and not context.value("tool_call_parser"):
        parsers = {tools for prefix, (tools, _) in PARSERS.items()
                   if context.body.family.startswith(prefix)}  # fmt: skip
        yield Symptom(
            "enable_auto_tool_choice without a tool_call_parser",
            key="arguments.tool_call_parser",
            remedy=f"tool_call_parser: {next(iter(parsers), 'the one of the model family')}",
        )


@check("thinking-budget")
def _thinking(context: Context) -> Iterator[Symptom]:
    smoke = context.service.smoke
    if (
        smoke.thinking
        and "thinking" in context.body.capabilities
        and smoke.max_tokens < THINKING_TOKENS
    ):
        yield Symptom(
            f"{smoke.max_tokens} tokens for an answer that thinks first",
            key="smoke.max_tokens",
            remedy=f"max_tokens: {THINKING_TOKENS}, or thinking: False",
        )

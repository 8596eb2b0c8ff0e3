"""The model: what it is quantized with, what it can do, and whether it works at all."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.rule import Context, Match, Rule
from sparkwright.engines.vllm.architectures import architectures, version_with
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
#: The least budget of an answer that may think first.
THINKING_TOKENS = 2048


def _quantization(context: Context) -> Iterator[Match]:
    flag, weights = context.arguments.get("quantization"), context.body.format
    if flag is None or weights is None:
        return
    if flag not in QUANTIZATION[weights]:
        right = QUANTIZATION[weights]
        yield Match(
            "arguments.quantization",
            f"{flag!r} for {context.body.name}, whose weights are {weights}",
            f"quantization: {right[0]}" if right else "leave it out",
            source=context.body.source,
        )


def _works(context: Context) -> Iterator[Match]:
    for model in filter(None, (context.body, context.drafter)):
        if model.status == "fails":
            yield Match(
                "recipe",
                f"{model.repository} does not work",
                "another model of the catalog",
                reason=model.reason,
                source=model.source,
            )
        elif model.status == "expected":
            yield Match(
                "recipe",
                f"{model.repository} has not been tried yet",
                "try it on one host first",
                reason=model.reason,
                source=model.source,
                severity=Severity.WARNING,
            )

    if context.recipe.status == "unproven":
        yield Match(
            "recipe",
            f"{context.recipe.name} was imported, and has not been run with this tool yet",
            "try it on one host first; then write its status: works",
            reason="arguments that one image takes can fail in another, minutes after the start",
            source=context.recipe.source,
            severity=Severity.WARNING,
        )


def _architecture(context: Context) -> Iterator[Match]:
    name, vllm = context.body.architecture, context.vllm
    if name is None or vllm is None:
        return
    listed = version_with(vllm)
    if name in architectures(listed):
        return
    tags = context.image.tags.items()
    others = [
        tag for tag, data in tags if data.vllm and name in architectures(version_with(data.vllm))
    ]
    yield Match(
        "arguments",
        f"vLLM {listed} has no implementation of {name}, which {context.body.repository} names",
        f"image_tag: {' or '.join(others)}"
        if others
        else "a newer image, or another model; vLLM "
        "tries transformers' own implementation where that has one: silence this once it answers",
        severity=None if listed == vllm else Severity.WARNING,
    )


def _context(context: Context) -> Iterator[Match]:
    length, limit = context.number("max_model_len"), context.body.context
    if length is None or limit is None or length <= limit:
        return
    allowed = context.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
    yield Match(
        "arguments.max_model_len",
        f"{length:g} tokens for a model made for {limit}",
        f"max_model_len: {limit}",
        severity=Severity.WARNING if allowed else None,
    )


def _parsers(context: Context) -> Iterator[Match]:
    for prefix, (tools, reasoning) in PARSERS.items():
        if not context.body.family.startswith(prefix):
            continue
        for name, right in (("tool_call_parser", tools), ("reasoning_parser", reasoning)):
            value = context.arguments.get(name)
            if value is not None and value != right:
                yield Match(
                    f"arguments.{name}", f"{value!r} for {context.body.name}", f"{name}: {right}"
                )


def _tool_choice(context: Context) -> Iterator[Match]:
    if context.value("enable_auto_tool_choice") and not context.value("tool_call_parser"):
        parsers = {tools for prefix, (tools, _) in PARSERS.items()
                   if context.body.family.startswith(prefix)}  # fmt: skip
        yield Match(
            "arguments.tool_call_parser",
            "enable_auto_tool_choice without a tool_call_parser",
            f"tool_call_parser: {next(iter(parsers), 'the one of the model family')}",
        )


def _thinking(context: Context) -> Iterator[Match]:
    smoke = context.service.smoke
    if (
        smoke.thinking
        and "thinking" in context.body.capabilities
        and smoke.max_tokens < THINKING_TOKENS
    ):
        yield Match(
            "smoke.max_tokens",
            f"{smoke.max_tokens} tokens for an answer that thinks first",
            f"max_tokens: {THINKING_TOKENS}, or thinking: False",
        )


RULES = (
    Rule(
        "quantization-format", Severity.ERROR, "a quantization flag for another format of weights",
        "modelopt and compressed-tensors name and scale their tensors differently",
        "card of Gemma-4-26B-A4B-it-Uncensored-NVFP4, 'The NVFP4 Quantization Problem'; card of "
        "vllm-ultimate-dgx-spark, recipe A", _quantization,
    ),
    Rule(
        "model-works", Severity.ERROR, "a model that the cards say does not work",
        "the card tried it", "card of vllm-ultimate-dgx-spark, known issues of models", _works,
    ),
    Rule(
        "model-architecture", Severity.ERROR, "a model that the tag's vLLM does not know",
        "vLLM ends at start: the class that config.json names is not in its registry",
        "vLLM's own registry of models, by version", _architecture,
    ),
    Rule(
        "context-limit", Severity.ERROR, "a context beyond what the model was made for",
        "vLLM refuses it, or answers get worse without a message",
        "the models' cards (maximum context)", _context,
    ),
    Rule(
        "parser-family", Severity.WARNING, "a parser of another family of models",
        "tool calls or reasoning then appear as plain text",
        "serve commands of the cards", _parsers,
    ),
    Rule(
        "tool-parser", Severity.ERROR, "tool calls that nobody parses",
        "vLLM ends at start: --enable-auto-tool-choice requires --tool-call-parser",
        "vLLM's validate_parsed_serve_args, 0.19.1 to 0.33.0", _tool_choice,
    ),
    Rule(
        "thinking-budget", Severity.ERROR, "too few tokens for a model that thinks first",
        "thinking uses them up: content is null and finish_reason length",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Common gotcha'; card of vllm-spark-omni-q36, "
        "quick start", _thinking,
    ),
)  # fmt: skip

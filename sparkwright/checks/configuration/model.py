"""The model: what it is quantized with, what it can do, and whether it works at all."""

from collections.abc import Iterator

from sparkwright.checks.configuration.facts import Context
from sparkwright.config.settings import THINKING_TOKENS
from sparkwright.engines.vllm.architectures import architectures, version_with
from sparkwright.engines.vllm.data import DATA
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: Values of --quantization that a format of weights goes with.
QUANTIZATION: dict[str, list[str]] = DATA["quantization"]
#: Families, and by argument the parsers that their cards serve them with.
PARSERS: dict[str, dict[str, str]] = DATA["parsers"]


@check("quantization-format")
def _quantization(context: Context) -> Iterator[Symptom]:
    flag, weights = context.arguments.get("quantization"), context.body.format
    if flag is not None and weights is not None and flag not in QUANTIZATION[weights]:
        right = QUANTIZATION[weights]
        remedy = f"quantization: {right[0]}" if right else "leave it out"
        yield Symptom(flag=flag, model=context.body, remedy=remedy, source=context.body.source)


@check("model-works")
def _works(context: Context) -> Iterator[Symptom]:
    for model in filter(None, (context.body, context.drafter)):
        if model.status in ("fails", "expected"):
            case = model.status
            yield Symptom(
                "model-works", case, model=model, reason=model.reason, source=model.source
            )
    if context.recipe.status == "unproven":
        yield Symptom("model-works", "unproven", model=context.recipe, source=context.recipe.source)


@check("model-architecture")
def _architecture(context: Context) -> Iterator[Symptom]:
    name, vllm = context.body.architecture, context.version
    if name is None or vllm is None or name in architectures(listed := version_with(vllm)):
        return
    others = [
        tag
        for tag, data in context.image.tags.items()
        if data.vllm and name in architectures(version_with(data.vllm))
    ]
    yield Symptom(
        "model-architecture",
        "others" if others else "",
        severity=None if listed == vllm else Severity.WARNING,
        version=listed,
        name=name,
        model=context.body,
        others=" or ".join(others),
    )


@check("context-limit")
def _context(context: Context) -> Iterator[Symptom]:
    length, limit = context.number("max_model_len"), context.body.context
    if length is not None and limit is not None and length > limit:
        allowed = context.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
        severity = Severity.WARNING if allowed else None
        yield Symptom(severity=severity, length=length, limit=limit)


def _parsers(context: Context) -> dict[str, str]:
    """The parsers of the model's family, by argument."""
    families = (family for family in PARSERS if context.body.family.startswith(family))
    return PARSERS.get(next(families, ""), {})


@check("parser-family")
def _parser(context: Context) -> Iterator[Symptom]:
    for name, right in _parsers(context).items():
        value = context.arguments.get(name)
        if value not in (None, right):
            yield Symptom(value=value, model=context.body, name=name, right=right)


@check("tool-parser")
def _tool_choice(context: Context) -> Iterator[Symptom]:
    if context.value("enable_auto_tool_choice") and not context.value("tool_call_parser"):
        parser = _parsers(context).get("tool_call_parser", "the one of the model family")
        yield Symptom(parser=parser)


@check("thinking-budget")
def _thinking(context: Context) -> Iterator[Symptom]:
    smoke = context.service.settings.smoke
    thinks = smoke.thinking and "thinking" in context.body.capabilities
    if thinks and smoke.max_tokens < THINKING_TOKENS:
        yield Symptom(tokens=smoke.max_tokens, least=THINKING_TOKENS)

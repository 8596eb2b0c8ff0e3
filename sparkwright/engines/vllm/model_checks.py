"""Checks of a model and its arguments: quantization, architecture, context, parsers and GPUs."""

from collections.abc import Iterator

from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.data import DATA, PARALLEL
from sparkwright.engines.vllm.table import architectures, nearest
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: Values of --quantization that fit a format of weights.
QUANTIZATION: dict[str, list[str]] = DATA["quantization"]
#: Model families, and for each argument the parsers that their cards use.
PARSERS: dict[str, dict[str, list[str]]] = DATA["parsers"]


@check("quantization-format")
def _quantization(context: Configuration) -> Iterator[Symptom]:
    flag, weights = context.written.get("quantization"), context.body.format
    if flag is not None and weights is not None and flag not in QUANTIZATION[weights]:
        right = QUANTIZATION[weights]
        remedy = f"quantization: {right[0]}" if right else "leave it out"
        yield Symptom(flag=flag, model=context.body, remedy=remedy, source=context.body.source)


@check("model-architecture")
def _architecture(context: Configuration) -> Iterator[Symptom]:
    name, vllm, served = context.body.architecture, context.version, architectures()
    if name is None or vllm is None or name in served[listed := nearest(vllm, served)]:
        return
    others = [
        tag
        for tag, data in context.image.tags.items()
        if data.version and name in served[nearest(data.version, served)]
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
def _context(context: Configuration) -> Iterator[Symptom]:
    length, limit = context.limits.context, context.body.context
    if length is not None and limit is not None and length > limit:
        allowed = context.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1"
        severity = Severity.WARNING if allowed else None
        yield Symptom(severity=severity, length=length, limit=limit)


@check("chunked-prefill")
def _whole_prompts(context: Configuration) -> Iterator[Symptom]:
    batched = context.number("max_num_batched_tokens")
    length = context.limits.context or context.body.context
    whole = context.effective.get("enable_chunked_prefill") is False
    if whole and batched and length and batched < length:
        yield Symptom(batched=batched, length=length)


def _parsers(context: Configuration) -> dict[str, list[str]]:
    """The parsers of the model's family by argument, the cards' parsers first."""
    families = (family for family in PARSERS if context.body.family.startswith(family))
    return PARSERS.get(next(families, ""), {})


@check("parser-family")
def _parser(context: Configuration) -> Iterator[Symptom]:
    for name, right in _parsers(context).items():
        value = context.written.get(name)
        if value not in (None, *right):
            yield Symptom(value=value, model=context.body, name=name, right=right[0])


@check("tool-parser")
def _tool_choice(context: Configuration) -> Iterator[Symptom]:
    arguments = context.effective
    if arguments.get("enable_auto_tool_choice") and not arguments.get("tool_call_parser"):
        parser = _parsers(context).get("tool_call_parser", ["the parser of the model family"])[0]
        yield Symptom(parser=parser)


@check("gpu-count")
def _gpus(context: Configuration) -> Iterator[Symptom]:
    wanted = context.limits.gpus
    if context.gpus is not None and wanted > context.gpus:
        yield Symptom(
            wanted=wanted,
            product=" x ".join(PARALLEL),
            there=context.gpus,
            name=max(PARALLEL, key=lambda name: context.number(name) or 1),
            further="" if context.unified else ", or more in gpus",
        )

"""vLLM's own arguments and variables, by the version that the tag holds."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.rule import Context, Match, Rule
from sparkwright.engines.vllm.arguments import check_arguments, known_variables
from sparkwright.findings.finding import Severity

#: Values that AEON's builds know and stock vLLM does not.
_ALSO: dict[str, dict[str, tuple[str, ...]]] = {
    "aeon-vllm-ultimate": {"kv_cache_dtype": ("tq_k8v4",)},
    # Of vLLM 0.19.1 with DFlash merged into it.
    "vllm-dflash": {"speculative_method": ("dflash",)},
    "vllm-dflash-tq": {"speculative_method": ("dflash",)},
}


def _arguments(context: Context) -> Iterator[Match]:
    also = _ALSO.get(context.image.name, {})
    for finding in check_arguments(context.vllm, context.arguments, context.environment, also):
        yield Match(
            key=finding.key,
            observed=finding.what,
            remedy=finding.instead,
            reason=finding.why,
            source=finding.source,
            severity=Severity(finding.severity),
            id=finding.rule,
        )


def _not_read(context: Context) -> Iterator[Match]:
    known = known_variables()
    for name, value in context.environment.items():
        own = known.get(name, {})
        if context.image.name in own.get("not_in", ()) and value not in ("", "0", "off"):
            yield Match(
                f"environment.{name}",
                f"nothing in {context.image.name} reads {name}",
                own["instead"],
                source=own["source"],
            )


RULES = (
    Rule(
        "vllm-arguments", Severity.ERROR, "what the tag's vLLM does not take",
        "vLLM ends at start, some of them minutes after it", "vLLM's own parser, by version",
        _arguments,
    ),
    Rule(
        "variable-not-read", Severity.ERROR, "a variable of another image",
        "it is ignored without a message, and what it asks for is not there",
        "the cards, by variable (sparkwright/engines/vllm/variables.yaml)", _not_read,
    ),
)  # fmt: skip

"""vLLM's own arguments and variables, by the version that the tag holds."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Severity
from sparkwright.rules.rule import Context, Match, Rule
from sparkwright.vllm.arguments import check_arguments

#: Values that AEON's builds know and stock vLLM does not.
_AEON = {"kv_cache_dtype": ("tq_k8v4",)}


def _arguments(context: Context) -> Iterator[Match]:
    also = _AEON if context.image.name == "aeon-vllm-ultimate" else {}
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


RULES = (
    Rule(
        "vllm-arguments", Severity.ERROR, "what the tag's vLLM does not take",
        "vLLM ends at start, some of them minutes after it", "vLLM's own parser, by version",
        _arguments,
    ),
)  # fmt: skip

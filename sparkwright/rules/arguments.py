"""vLLM's own arguments and variables, by the version that the tag holds."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.findings.finding import Severity
from sparkwright.rules.rule import Hit, Rule, Subject
from sparkwright.vllm.arguments import check_arguments

#: Values that AEON's builds know and stock vLLM does not.
_AEON = {"kv_cache_dtype": ("tq_k8v4",)}


def _arguments(subject: Subject) -> Iterator[Hit]:
    also = _AEON if subject.image.name == "aeon-vllm-ultimate" else {}
    for finding in check_arguments(subject.vllm, subject.arguments, subject.environment, also):
        yield Hit(
            key=finding.key,
            what=finding.what,
            instead=finding.instead,
            why=finding.why,
            source=finding.source,
            severity=Severity(finding.severity),
            rule=finding.rule,
        )


RULES = (
    Rule(
        "vllm-arguments", Severity.ERROR, "what the tag's vLLM does not take",
        "vLLM ends at start, some of them minutes after it", "vLLM's own parser, by version",
        _arguments,
    ),
)  # fmt: skip

"""vLLM's own arguments and variables, by the version that the tag holds."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.arguments import check_arguments, known_variables
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

#: Values that AEON's builds know and stock vLLM does not.
_ALSO: dict[str, dict[str, tuple[str, ...]]] = {
    "aeon-vllm-ultimate": {"kv_cache_dtype": ("tq_k8v4",)},
    # Of vLLM 0.19.1 with DFlash merged into it.
    "vllm-dflash": {"speculative_method": ("dflash",)},
    "vllm-dflash-tq": {"speculative_method": ("dflash",)},
}


@check("vllm-arguments")
def _arguments(context: Configuration) -> Iterator[Symptom]:
    also = _ALSO.get(context.image.name, {})
    for finding in check_arguments(context.version, context.arguments, context.environment, also):
        yield Symptom(
            finding.what,
            key=finding.key,
            remedy=finding.instead,
            reason=finding.why,
            source=finding.source,
            severity=Severity(finding.severity),
            check=finding.rule,
        )


@check("variable-not-read")
def _not_read(context: Configuration) -> Iterator[Symptom]:
    known = known_variables()
    for name, value in context.environment.items():
        own = known.get(name, {})
        if context.image.name in own.get("not_in", ()) and value not in ("", "0", "off"):
            yield Symptom(
                f"nothing in {context.image.name} reads {name}",
                key=f"environment.{name}",
                remedy=own["instead"],
                source=own["source"],
            )

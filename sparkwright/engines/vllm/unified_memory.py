"""Arguments with which a GB10 was observed to thrash or hang: CPU and GPU share one pool."""

from collections.abc import Iterator, Mapping

from sparkwright.catalog.gpus import MOST_ON_GB10
from sparkwright.engines.arguments import amount
from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.limits import limits
from sparkwright.engines.vllm.speculation_checks import LIMITS
from sparkwright.findings import thresholds
from sparkwright.findings.check import Symptom, check

#: ``max_num_batched_tokens``: the largest batch with which no Spark was observed to hang.
_SAFE_BATCH = 32768


@check("gb10-memory-share", "gb10-batched-tokens")
def _on_a_spark(context: Configuration) -> Iterator[Symptom]:
    if context.unified:
        case = "" if "gpu_memory_utilization" in context.written else "default"
        batch = context.number("max_num_batched_tokens")
        yield from _beyond(context.limits.share, batch, case)


def _beyond(share: float | None, batch: float | None, case: str = "") -> Iterator[Symptom]:
    if share and share > MOST_ON_GB10:
        yield Symptom("gb10-memory-share", case, share=share)
    if batch and batch > _SAFE_BATCH:
        yield Symptom("gb10-batched-tokens", batch=batch, safe=_SAFE_BATCH)


def seen_faults(arguments: Mapping[str, str], unified: bool) -> Iterator[Symptom]:
    """Faults in the command line of a running container."""
    own = limits(arguments)
    if unified:
        share = amount(arguments.get("gpu_memory_utilization"))
        yield from _beyond(share, amount(arguments.get("max_num_batched_tokens")))
        override = {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(arguments)
        if override and (own.sequences or 0) >= thresholds.limits()["gb10_sequences"]:
            yield Symptom("gb10-sequences", sequences=own.sequences, override=min(override))
    missing = [name for name in LIMITS if name not in arguments]
    if missing and (own.speculative or {}).get("method") == "dflash":
        yield Symptom("dflash-without-limits", missing=" and ".join(missing))

"""Checks of a model and its arguments: context, types of the KV cache, pooling and template."""

from collections.abc import Iterator

from sparkwright.engines.engine import Configuration
from sparkwright.engines.llamacpp.memory import fitting_context
from sparkwright.findings.check import Symptom, check

#: Types of the KV cache that are not quantized.
_PLAIN = ("f32", "f16", "bf16")


@check("llamacpp-context")
def _context(context: Configuration) -> Iterator[Symptom]:
    length, limit = context.limits.context, context.body.context
    if length and limit and length > limit:
        fits = (context.limits.cache or length) * limit // length
        if context.pool_gib and not context.unified:
            room = fitting_context(context.body, context.effective, context.pool_gib)
            fits = min(fits, room or fits)
        yield Symptom(length=length, limit=limit, fits=fits)


@check("llamacpp-cache-types")
def _cache_types(context: Configuration) -> Iterator[Symptom]:
    value = context.effective.get("cache_type_v")
    if value not in (None, *_PLAIN) and context.effective.get("flash_attn") == "off":
        yield Symptom(value=value)


@check("llamacpp-pooling")
def _pooling(context: Configuration) -> Iterator[Symptom]:
    pooling = context.body.gguf and context.body.gguf.pooling
    if pooling and not context.limits.pools:
        name = "reranking" if pooling == "rank" else "embeddings"
        yield Symptom(model=context.body, pooling=pooling, name=name)


@check("llamacpp-tools")
def _template(context: Configuration) -> Iterator[Symptom]:
    if context.written.get("jinja") is False and "tools" in context.body.capabilities:
        yield Symptom()


@check("llamacpp-drafting")
def _drafting(context: Configuration) -> Iterator[Symptom]:
    names_one = context.effective.get("model_draft") is not None
    if names_one and not context.limits.speculates:
        yield Symptom()
    elif context.drafter and not names_one:
        yield Symptom("llamacpp-drafting", "unused", mount=context.drafter_mount)

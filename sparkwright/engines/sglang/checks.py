"""Known mistakes with SGLang: speculative decoding, and GB10."""

from collections.abc import Iterator, Mapping

from sparkwright.engines.arguments import amount
from sparkwright.engines.engine import Configuration
from sparkwright.engines.sglang.data import DATA, PARSER, SAFE_SHARE
from sparkwright.engines.tables import release
from sparkwright.findings.check import Symptom, check

#: The first version with images that are built with CUDA 13, and have kernels of sm_121a.
_ON_GB10 = (0, 5, 11)
#: Algorithms that draft with a separate model, which must be mounted.
_DRAFTERS = ("dflash", "dspark", "eagle3", "standalone")
_BACKENDS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")

_arguments = PARSER.judgement("sglang-arguments")


@check("sglang-attention", "sglang-memory-share", "sglang-old-on-gb10")
def _on_a_spark(context: Configuration) -> Iterator[Symptom]:
    if not context.unified:
        return
    version = release(context.version or "")
    if (0, 0, 0) < version < _ON_GB10:
        yield Symptom("sglang-old-on-gb10", version=context.version)
    for name in _BACKENDS:
        backend = context.written.get(name)
        if backend in DATA["elsewhere"]:
            yield Symptom("sglang-attention", backend=backend, name=name)
    share = context.limits.share or 0.0
    if share > SAFE_SHARE:
        case = "" if "mem_fraction_static" in context.written else "default"
        yield Symptom("sglang-memory-share", case, share=share)


@check("sglang-context-limit")
def _context(context: Configuration) -> Iterator[Symptom]:
    length, limit = context.limits.context, context.body.context
    allowed = context.environment.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN") == "1"
    if length is not None and limit is not None and length > limit and not allowed:
        yield Symptom(length=length, limit=limit)


@check("sglang-drafter", "sglang-draft-window", "sglang-mamba-strategy")
def _drafts(context: Configuration) -> Iterator[Symptom]:
    speculative, mount = context.limits.speculative, context.drafter_mount
    if speculative is None:
        return
    method, model = str(speculative["method"]), speculative["model"]
    if method in _DRAFTERS and mount is None:
        yield Symptom("sglang-drafter", algorithm=method.upper())
    elif mount is not None and model != mount:
        yield Symptom("sglang-drafter", "elsewhere", mount=mount, model=model)
    names = ("eagle_topk", "num_steps", "num_draft_tokens")
    topk, steps, tokens = (context.number(f"speculative_{name}") for name in names)
    chain = method in ("eagle", "nextn", "eagle3") and topk == 1 and steps and tokens
    if chain and steps and tokens != steps + 1:
        yield Symptom("sglang-draft-window", tokens=tokens, steps=steps, right=steps + 1)
    lazy = context.written.get("mamba_radix_cache_strategy") == "extra_buffer_lazy"
    if lazy and method == "dflash":
        yield Symptom("sglang-mamba-strategy", algorithm=method.upper())


def seen_faults(arguments: Mapping[str, str], unified: bool) -> Iterator[Symptom]:
    """Faults in the command line of a running container."""
    share = amount(arguments.get("mem_fraction_static"))
    if unified and share and share > SAFE_SHARE:
        yield Symptom("sglang-share-seen", share=share)

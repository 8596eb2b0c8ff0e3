"""Memory of llama.cpp: weights and KV cache, computed from the header of a GGUF file."""

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.catalog import ArgumentValue, Model
from sparkwright.catalog.entries import KvLayers
from sparkwright.engines.arguments import amount, whole
from sparkwright.engines.engine import Configuration
from sparkwright.engines.llamacpp.arguments import DATA
from sparkwright.engines.llamacpp.limits import limits, slots
from sparkwright.findings.check import Symptom, check
from sparkwright.text.sizes import GIB

#: GiB for the compute buffer and CUDA itself: an estimate of this project, on the small side.
OVERHEAD_GIB = 1.0
KV_BYTES: dict[str, float] = DATA["kv_bytes"]
_STEP = 1024
#: Default of ``ubatch_size``, and the multiple to which a cache's cells are rounded up.
_BATCH, _PAD = 512, 256
#: Number of tokens below which ``--fit`` does not shorten a context (``--fit-ctx``).
_FIT = 4096
#: MiB of prompts that llama-server keeps in RAM (``--cache-ram``) by default.
_PROMPTS_MIB = 8192
#: GiB of weights outside of the GPU that justify a warning.
WORTH_A_WORD = 0.01


def kv_bytes(
    model: Model, arguments: Mapping[str, ArgumentValue | None], tokens: int
) -> float | None:
    """Bytes of a sequence's keys and values; None if the geometry of the cache is not known."""
    types = (str(arguments.get(f"cache_type_{part}") or "f16") for part in ("k", "v"))
    widths = [KV_BYTES.get(name) for name in types]
    if not model.kv or None in widths:
        return None
    return sum(filter(None, widths)) * sum(
        layer.layers * layer.heads * layer.head_dim * _cells(layer, arguments, tokens)
        for layer in model.kv
    )


def _cells(layer: KvLayers, arguments: Mapping[str, ArgumentValue | None], tokens: int) -> int:
    """Tokens that a layer keeps: a sliding window keeps the tokens of each slot and of one step (by
    src/llama-kv-cache-iswa.cpp of ggml-org/llama.cpp).
    """
    if not layer.window or arguments.get("swa_full"):
        return tokens
    cells = layer.window * slots(arguments) + (whole(arguments, "ubatch_size") or _BATCH)
    return min(tokens, int(cells + _PAD - 1) // _PAD * _PAD)


def prompts_gib(arguments: Mapping[str, Any]) -> float:
    """GiB of the cache of prompts in RAM, which stays empty for a pooling model.

    A cache without a limit (-1) counts as the default size.
    """
    size = amount(arguments.get("cache_ram"))
    filled = _PROMPTS_MIB if size is None or size < 0 else size
    return 0.0 if limits(arguments).pools else filled / 1024


def weights_gib(model: Model, arguments: Mapping[str, Any]) -> float | None:
    """GiB of the weights in the GPU's memory; None if no size is known.

    llama.cpp keeps the last ``n_gpu_layers`` layers on the GPU, where the output counts as a layer,
    and leaves the experts of the first ``n_cpu_moe`` layers to the CPU.
    """
    header = model.gguf
    if header is None or not header.layer_bytes:
        return model.loaded_gib or model.size_gib
    layers, limit = len(header.layer_bytes), amount(arguments.get("n_gpu_layers"))
    count = layers + 1 if limit is None or limit < 0 else int(limit)
    first = max(layers + 1 - count, 0)
    on_gpu = sum(header.layer_bytes[first:]) + header.other_bytes * bool(count)
    by_cpu = layers if arguments.get("cpu_moe") else amount(arguments.get("n_cpu_moe")) or 0
    experts = header.expert_bytes / layers * max(0.0, min(by_cpu, layers) - first)
    projector = header.projector_bytes if arguments.get("mmproj_offload") is not False else 0
    return (max(0.0, on_gpu - experts) + projector) / GIB


def fitting_context(
    model: Model, arguments: Mapping[str, ArgumentValue | None], pool: float
) -> int | None:
    """Tokens of the longest context that fits into the pool, at most the model's own length; None
    if sizes are not known, and 0 if nothing fits.
    """
    weights, context = weights_gib(model, arguments), model.context
    if weights is None or not context or not (cache := kv_bytes(model, arguments, context)):
        return None
    room = (pool - weights - OVERHEAD_GIB) * GIB
    if room >= cache:
        return context
    # A sliding window's memory is the same for every context.
    full = [layer for layer in model.kv if _cells(layer, arguments, context) == context]
    growing = kv_bytes(model.model_copy(update={"kv": tuple(full)}), arguments, context) or 0.0
    if not growing or room < cache - growing:
        return 0
    return int((room - cache + growing) / growing * context) // _STEP * _STEP


def _drafter_gib(context: Configuration, tokens: int) -> float:
    """GiB of the drafter and its KV cache, which is as long as the body's cache."""
    if context.drafter is None or not context.limits.speculates:
        return 0.0
    names = ("n_gpu_layers", "n_cpu_moe", "cache_type_k", "cache_type_v")
    own = {name: context.effective.get(f"{name}_draft") for name in names}
    cache = (kv_bytes(context.drafter, own, tokens) or 0) / GIB
    return (weights_gib(context.drafter, own) or 0) + cache


@check("llamacpp-memory", "llamacpp-layers-in-ram")
def _memory(context: Configuration) -> Iterator[Symptom]:
    arguments, limits, pool = context.effective, context.limits, context.pool_gib
    on_gpu = weights_gib(context.body, arguments)
    if on_gpu is None or pool is None or context.unified:
        return
    # llama-server reduces an unset context until it fits, down to this length.
    least = None if arguments.get("fit") == "off" else amount(arguments.get("fit_ctx")) or _FIT
    tokens = limits.cache or int(least or context.body.context or 0)
    cache = (kv_bytes(context.body, arguments, tokens) or 0) / GIB
    drafter = _drafter_gib(context, tokens)
    if on_gpu + cache + drafter + OVERHEAD_GIB > pool:
        fits = fitting_context(context.body, arguments, pool - drafter) or 0
        yield Symptom(
            "llamacpp-memory",
            "shorter" if fits else "",
            weights=on_gpu,
            cache=cache,
            drafter=f", {drafter:.1f} GiB of the drafter and its cache" if drafter else "",
            tokens=tokens,
            engine=OVERHEAD_GIB,
            pool=pool,
            fits=fits,
        )
    size = weights_gib(context.body, {}) or 0.0
    if (ram := size - on_gpu) > WORTH_A_WORD:
        yield Symptom("llamacpp-layers-in-ram", ram=ram, whole=size, share=ram / size)

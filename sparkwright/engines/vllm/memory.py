"""Memory of vLLM: its share, weights and KV cache, and sizes of a derived service."""

import math
from collections.abc import Mapping
from functools import partial

from sparkwright.catalog import ArgumentValue, Catalog, Model, gpus
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.engines import derivation, kv_cache
from sparkwright.engines.arguments import amount
from sparkwright.engines.vllm.data import DATA
from sparkwright.text.sizes import GIB

#: The default of vLLM 0.20 to 0.33, for an image without a version on its card.
DEFAULT_UTILIZATION = 0.92
#: GiB for activations, CUDA graphs and the engine itself: an estimate of this project, on the small
#: side, since a refused service must certainly fail.
OVERHEAD_GIB = 2.0

#: Bytes of a sequence's keys and values.
kv_bytes = partial(kv_cache.kv_bytes, DATA["kv_bytes"])

#: The largest share of a Spark for a derived service: between the cards' 0.75 and 0.85 for a model
#: that has the Spark for itself.
MOST = 0.80
_SHARE = "gpu_memory_utilization"
#: Part of the memory for keys and values that one sequence is planned to fill.
_FILLED = 0.9
_STEP = 1024


def pool_gib(gpu: derivation.Gpu) -> float | None:
    """Memory that shares divide: a pool, or a card in whole GiB; None if unknown before
    observation.
    """
    if gpu.unified:
        return gpus.LEAST_SPARK_GIB
    return float(int(gpu.vram_gib)) if gpu.vram_gib else None


def spark_share(settings: HostSettings, catalog: Catalog) -> float:
    """Memory share of a Spark for each service that does not state its own share.

    The share is the rest after the system, sidecars and services that state their share.
    """
    shares = [_written(service, catalog) for service in settings.services.values()]
    taken, open_ones = sum(filter(None, shares)), shares.count(None)
    free = 1 - (gpus.SYSTEM_GIB + sum(settings.sidecars.values())) / gpus.LEAST_SPARK_GIB - taken
    return max(0.01, min(MOST, math.floor(free / max(1, open_ones) * 100) / 100))


def _written(service: ServiceSettings, catalog: Catalog) -> float | None:
    recipe = catalog.recipes.get(service.recipe or "")
    arguments = {**(recipe.arguments if recipe else {}), **service.arguments}
    if recipe is None and _SHARE not in arguments:
        return None
    return amount(arguments.get(_SHARE)) or DEFAULT_UTILIZATION


def weights_gib(model: Model) -> float:
    """Size of the weights in GiB; 0 if no size is known."""
    return model.loaded_gib or model.size_gib or 0.0


def fitting_context(
    model: Model,
    context: int,
    share: float,
    arguments: Mapping[str, ArgumentValue | None],
    pool: float,
) -> int | None:
    """Tokens of the longest sequence that fits into the share, at most the model's own length; None
    if the geometry of its cache is not known, or nothing fits.
    """
    whole = kv_bytes(model, arguments, context)
    if not whole:
        return None
    room = (pool * share - weights_gib(model) - OVERHEAD_GIB) * GIB * _FILLED
    if room >= whole:
        return context
    return max(0, int(room / whole * context) // _STEP * _STEP) or None


def least_vram_gib(
    model: Model, context: int, arguments: Mapping[str, ArgumentValue | None]
) -> float:
    """Memory of a card below which not even a short context fits, for an unnamed card."""
    cache = kv_bytes(model, arguments, min(context, 8192)) or 0.0
    needed = weights_gib(model) + OVERHEAD_GIB + cache / GIB
    return math.ceil(needed / DEFAULT_UTILIZATION * 10) / 10

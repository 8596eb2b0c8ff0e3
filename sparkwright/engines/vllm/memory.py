"""Memory of vLLM: its share, weights and KV cache, and sizes of a derived service."""

import math
from collections.abc import Mapping

from sparkwright.catalog import ArgumentValue, Catalog, Model
from sparkwright.catalog.gpus import LEAST_SPARK_GIB, SYSTEM_GIB
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.engines.derivation import Gpu
from sparkwright.engines.vllm.arguments import amount
from sparkwright.engines.vllm.data import DATA
from sparkwright.text.sizes import GIB

#: What vLLM 0.20 to 0.33 take when nothing is set, for an image whose version no card says.
DEFAULT_UTILIZATION = 0.92
#: GiB for activations, CUDA graphs and the engine itself: an estimate of this project, on the
#: small side, so that what it refuses would fail for certain.
OVERHEAD_GIB = 2.0

#: Bytes of one number in the KV cache.
KV_BYTES: dict[str, float] = DATA["kv_bytes"]

#: ``gpu_memory_utilization`` above which unified memory thrashes.
MOST_ON_GB10 = 0.88
#: The most that a derived service takes of a Spark: the cards give 0.70 to 0.85 to a model that
#: has it for itself.
MOST = 0.80
_SHARE = "gpu_memory_utilization"
#: Of what is left for keys and values, the part that one sequence is planned to fill.
_FILLED = 0.9
_STEP = 1024


def kv_bytes_per_token(model: Model, dtype: str, length: int) -> float | None:
    """Bytes of one token's keys and values, averaged over a sequence of this length."""
    width = KV_BYTES.get(dtype.lower())
    if not model.kv or width is None:
        return None
    total = 0.0
    for layer in model.kv:
        kept = 1.0 if layer.window is None else min(1.0, layer.window / max(1, length))
        total += layer.layers * 2 * layer.heads * layer.head_dim * width * kept
    return total


def kv_bytes(model: Model, arguments: Mapping[str, ArgumentValue], tokens: int) -> float | None:
    """Bytes of a sequence's keys and values."""
    dtype = str(arguments.get("kv_cache_dtype") or "auto")
    per_token = kv_bytes_per_token(model, dtype, tokens)
    return None if per_token is None else per_token * tokens


def pool_gib(gpu: Gpu) -> float | None:
    """The memory that a share is of, of a card in whole GiB; None where it is not known before the
    host is asked."""
    if gpu.unified:
        return LEAST_SPARK_GIB
    return float(int(gpu.vram_gib)) if gpu.vram_gib else None


def spark_share(settings: HostSettings, catalog: Catalog) -> float:
    """Memory share of a Spark for each service that does not state its own.

    It is the rest beside the system, sidecars and services that state their share.
    """
    taken, open_ones = 0.0, 0
    for service in settings.services.values():
        written = _written(service, catalog)
        if written is None:
            open_ones += 1
        else:
            taken += written
    free = 1 - (SYSTEM_GIB + sum(settings.sidecars.values())) / LEAST_SPARK_GIB - taken
    return max(0.01, min(MOST, math.floor(free / max(1, open_ones) * 100) / 100))


def _written(service: ServiceSettings, catalog: Catalog) -> float | None:
    if _SHARE in service.arguments:
        return amount(service.arguments[_SHARE]) or DEFAULT_UTILIZATION
    recipe = catalog.recipes.get(service.recipe or "")
    if recipe is None:
        return None
    return amount(recipe.arguments.get(_SHARE)) or DEFAULT_UTILIZATION


def weights_gib(model: Model) -> float:
    """Size of the weights in GiB; 0 where no size is known."""
    return model.loaded_gib or model.size_gib or 0.0


def fitting_context(
    model: Model, context: int, share: float, kv_dtype: ArgumentValue | None, pool: float
) -> int | None:
    """Tokens of the longest sequence that the share has room for, at most the model's own; None
    where the geometry of its cache is not known, or nothing fits."""
    per_token = kv_bytes_per_token(model, str(kv_dtype or "auto"), context)
    if not per_token:
        return None
    room = (pool * share - weights_gib(model) - OVERHEAD_GIB) * GIB * _FILLED
    if room >= per_token * context:
        return context
    fits = int(room / per_token) // _STEP * _STEP
    return fits if fits >= _STEP else None


def least_vram_gib(model: Model, context: int, kv_dtype: ArgumentValue | None) -> float:
    """Memory of a card below which not even a short context fits: for a card that is not named."""
    short = min(context, 8192)
    per_token = kv_bytes_per_token(model, str(kv_dtype or "auto"), short) or 0.0
    needed = weights_gib(model) + OVERHEAD_GIB + per_token * short / GIB
    return math.ceil(needed / DEFAULT_UTILIZATION * 10) / 10

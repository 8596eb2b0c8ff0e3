"""Second start after a first start that compiled code, if GPU and CPU share memory.

An engine may reserve for its whole life the memory that was in use during its start. On unified
memory the reservation includes the compiler's peak of 30 GB and more: vLLM's KV cache got 9.5 GiB
instead of 40 (eugr/spark-vllm-docker#286). A second start, with all code compiled, measures the
memory again.
"""

import re
from pathlib import Path

from sparkwright.host.lib import documents, gpu, http, metrics
from sparkwright.host.service import Service, SmokeRequest


def due(service: Service) -> bool:
    """Return whether the start of a service's new release compiled code, on unified memory."""
    if not service.second_boot or not service.gate.compiled:
        return False
    caches = Path(service.home, "caches")
    state = documents.read(caches / "state.json") or {}
    if (state.get("release"), state.get("warm")) != (service.release, False):
        return False
    there = (caches / "current" / service.gate.compiled).is_dir()
    return there and any("GB10" in item.name for item in gpu.ask(gpu.IDENTITY).gpus)


def kv_blocks(gate: SmokeRequest) -> int | None:
    """Return the number of blocks in a service's KV cache; None if the engine does not report the
    number.
    """
    try:
        answer = http.Server(gate.address, gate.port, http.api_key(gate.secrets)).get("/metrics")
    except (http.NoAnswer, OSError, KeyError):
        return None
    text = metrics.texts(answer.text, gate.metric_names).get(metrics.BLOCKS, "")
    return int(text) if re.fullmatch("[0-9]{1,12}", text) else None


def outcome(first: int | None, second: int | None) -> str:
    """Describe the outcome of the second start."""
    if first is None or second is None:
        return "the service was started again, but the engine does not report its KV cache's blocks"
    return f"the KV cache has {second} blocks; after the start that compiled, it had {first}"

"""GPUs of boxes, queried through the user's own ssh. The query changes nothing on the boxes."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sparkwright.bootstrap.askpass import run
from sparkwright.catalog.gpus import FAMILIES, unified
from sparkwright.config.ssh import ssh
from sparkwright.host.lib.gpu import IDENTITY, Gpu, parse
from sparkwright.text.visible import cut

_SECONDS = 15
_ASK = f"nvidia-smi --query-gpu={','.join(IDENTITY)} --format=csv,noheader"


@dataclass(frozen=True)
class Box:
    """A box and its GPU.

    Attributes:
        gpu: name of the GPU for `init`; None if the catalog lacks the GPU.
        shown: nvidia-smi's name of the GPU.
        why: message of ssh or nvidia-smi, if there is no GPU.
    """

    name: str
    gpu: str | None = None
    shown: str = ""
    why: str = ""


def boxes(names: Iterable[str]) -> list[Box]:
    """Query the GPUs of several boxes in parallel."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        return list(pool.map(box, names))


def box(name: str, data: Mapping[str, Any] | None = None) -> Box:
    """Query the GPU of a box.

    Args:
        data: data of the host, as an inventory has it.
    """
    code, out, err = run([*ssh(name, data or {}), _ASK], seconds=_SECONDS)
    gpus = parse(out) if code == 0 else ()
    if not gpus:
        lines = (err.strip() or out.strip()).splitlines()
        return Box(name, why=cut(lines[-1] if lines else "no GPU", 120))
    return Box(name, kind(gpus[0]), cut(gpus[0].name, 60))


def kind(gpu: Gpu) -> str | None:
    """Return the GPU's name for `init`, by compute capability and memory; cards report slightly
    less memory than their names state.
    """
    family = FAMILIES.get(gpu.compute_cap or "")
    if family is None:
        return None
    if unified(family.cap):
        return next(iter(family.cards))
    memory = (gpu.memory_mib or 0) / 1024
    fitting = [(gib, name) for name, gib in family.cards.items() if gib and memory >= gib - 0.1]
    return max(fitting)[1] if fitting else None

"""Check that services fit into the free memory of the GPU, or of a host that shares memory with it.

The plan keeps the memory of every sleeping service free, so only other programs can take it.
"""

from collections.abc import Sequence
from pathlib import Path

from sparkwright.host.lib import exclusive, gpu, homes, memory, systemd

#: GiB of shared memory that must stay free, since a host without free memory stops answering; and
#: GiB that a sleeping engine still holds (1.97 on an H200).
_RESERVE, _ASLEEP = 2.0, 2.0


def measured() -> float | None:
    """Return the free GiB beyond the reserve; with several GPUs, the GPU with the most free memory
    counts. None if nvidia-smi reports no memory.
    """
    gpus = gpu.ask(gpu.LOAD).gpus
    if any(each.unified for each in gpus):
        return memory.meminfo().get("MemAvailable", 0) / (1 << 30) - _RESERVE
    free = (
        (each.memory_mib - each.memory_used_mib) / 1024
        for each in gpus
        if each.memory_mib and each.memory_used_mib is not None
    )
    return max(free, default=None)


def lacking(state: Path, starts: Sequence[str], stops: Sequence[str]) -> str:
    """Return the reason why sleeping services do not fit, with the services that hold the memory;
    empty if the services fit.

    Args:
        stops: services that stop first.
    """
    free = measured() if starts else None
    if free is None:
        return ""
    needs, sleeping = exclusive.groups(state).memory, exclusive.sleeping(state)
    needed = sum(needs.get(name, 0.0) for name in starts)
    active = [name for name in sorted(needs) if systemd.is_active(homes.unit(name))]
    held = {name: needs[name] for name in active if name not in sleeping}
    given = sum(held.pop(name, 0.0) for name in stops) + _ASLEEP * len({*active} & {*starts})
    if needed <= free + given:
        return ""
    holders = ", ".join(f"{name} holds {size:.0f}" for name, size in held.items())
    rest = f"{holders or 'no other service runs'}, and another program may hold the rest"
    return f"{needed:.0f} GiB of memory are needed and {free + given:.0f} are free: {rest}"

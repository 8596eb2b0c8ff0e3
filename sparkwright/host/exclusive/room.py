"""Memory for a service that is to start: of the GPU, or of a host that shares it with its GPU.

The plan keeps the memory of every sleeping service free, so only other programs can take it.
"""

from collections.abc import Sequence
from pathlib import Path

from sparkwright.host.lib import exclusive, gpu, homes, memory, records, systemd

_GIB = 1 << 30
#: GiB that stay free of memory that GPU and CPU share, since without memory a host stops to answer;
#: and GiB that an engine which sleeps still holds (1.97 on an H200).
_RESERVE, _ASLEEP = 2.0, 2.0


@records.dataclass(frozen=True)
class Room:
    """Measured memory in GiB; of several GPUs, of the GPU with the most free memory."""

    free: float
    total: float
    reserve: float = 0.0


def measured() -> Room | None:
    """Measure the memory now; None if nvidia-smi does not report it."""
    gpus = gpu.ask(gpu.LOAD).gpus
    if any(each.unified for each in gpus):
        values = memory.meminfo()
        free, total = values.get("MemAvailable", 0), values.get("MemTotal", 0)
        return Room(free / _GIB, total / _GIB, _RESERVE) if total else None
    rooms = [
        ((each.memory_mib - each.memory_used_mib) / 1024, each.memory_mib / 1024)
        for each in gpus
        if each.memory_mib and each.memory_used_mib is not None
    ]
    return Room(*max(rooms)) if rooms else None


def lacking(state: Path, service: str, stops: Sequence[str] = ()) -> str:
    """Return why there is no room for a service, and who holds the memory; empty if it fits.

    Args:
        stops: services that stop before, whose memory counts as free.
    """
    needs = exclusive.groups(state).memory
    room = measured() if service in needs else None
    if room is None:
        return ""
    asleep = exclusive.sleeping(state)
    active = {name for name in needs if systemd.is_active(homes.unit(name))}
    held = {name: needs[name] for name in sorted(active - set(asleep))}
    given = sum(held.get(name, 0.0) for name in stops)
    free = room.free + given + _ASLEEP * (service in active)
    if free >= needs[service] + room.reserve:
        return ""
    others = room.total - room.free - sum(held.values()) - _ASLEEP * len(active & set(asleep))
    holders = [f"{name} holds {size:.1f}" for name, size in held.items() if name not in stops]
    text = ", ".join([*holders, f"other programs {max(0.0, others):.1f}"])
    reserve = f" and {room.reserve:.0f} GiB of reserve" if room.reserve else ""
    needed = f"{service} needs {needs[service]:.1f} GiB of memory{reserve}"
    return f"{needed}, and {free:.1f} GiB are free: {text}"

"""Models, images and the items that belong to them on the disks of hosts, as a list."""

from collections.abc import Mapping

from rich.filesize import decimal

from sparkwright.host.disk_usage import DiskUsage, Item
from sparkwright.text.screen import folded
from sparkwright.text.visible import visible

_FOREIGN = "has no receipt"


def render(hosts: Mapping[str, DiskUsage], *, pruning: bool) -> str:
    """Render a block per host: items, their users, and removable or removed items.

    Equal hosts share a block.
    """
    lines: list[str] = []
    for names, usage in folded(hosts.items(), repr):
        things = usage.things
        there = [thing for thing in things if not thing.removed]
        idle = [thing for thing in things if not thing.used_by and thing.fault != _FOREIGN]
        freed = decimal(sum(thing.frees for thing in idle if thing.removed or not pruning))
        total = decimal(sum(thing.size for thing in there))
        lines.append(f"{', '.join(names)}: {total} in {len(there)} items")
        lines += [
            f"  {decimal(thing.size):>9}  {thing.kind:11}  {thing.name}  {_state(thing)}"
            for thing in things
        ]
        lines += [f"  unmanaged, unchanged: {path}" for path in usage.foreign]
        if pruning:
            lines.append(f"  freed: {freed}")
        elif idle:
            lines.append(f"  {freed} can be freed: sparkwright models prune")
    return "\n".join(map(visible, lines))


def faults(usage: DiskUsage) -> list[str]:
    """Return the faults of sparkwright's own items on a host."""
    return [thing.fault for thing in usage.things if thing.fault and thing.fault != _FOREIGN]


def _state(thing: Item) -> str:
    if thing.removed:
        return "removed"
    if thing.fault == _FOREIGN:
        return "no receipt: it may belong to another program, so it stays"
    used = f"used by {', '.join(thing.used_by)}" if thing.used_by else "not needed"
    return f"{used}; {thing.fault}" if thing.fault else used

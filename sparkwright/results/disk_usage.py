"""What lies on hosts, as a table: models, images and what belongs to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparkwright.host.disk_usage import DiskUsage, Item
from sparkwright.host.lib.records import decode
from sparkwright.text.screen import folded
from sparkwright.text.visible import visible

#: An image's name holds its whole digest; its beginning is enough to read.
_LONG = re.compile(r"(:sha256-[0-9a-f]{12})[0-9a-f]{52}$")


def holdings(answer: Mapping[str, Any]) -> DiskUsage:
    """A host's answer, typed."""
    return decode(DiskUsage, dict(answer))


def render(hosts: Mapping[str, Mapping[str, Any]], *, pruning: bool) -> str:
    """One block per host: what is there, who needs it, and what could go or is gone; equal hosts
    are one."""
    lines: list[str] = []
    read = ((name, holdings(answer)) for name, answer in hosts.items())
    for names, usage in folded(read, repr):
        things = usage.things
        total = sum(thing.size for thing in things if not thing.removed)
        idle = [thing for thing in things if not thing.used_by and _ours(thing)]
        freed = sum(thing.frees for thing in idle if thing.removed or not pruning)
        there = sum(not thing.removed for thing in things)
        lines.append(f"{', '.join(names)}: {_size(total)} in {there} things")
        for thing in things:
            lines.append(
                f"  {_size(thing.size):>9}  {thing.kind:11}  {thing.name}  {_state(thing)}"
            )
        lines.extend(f"             not ours, left alone: {path}" for path in usage.foreign)
        if pruning:
            lines.append(f"  freed: {_size(freed)}")
        elif idle:
            lines.append(f"  {_size(freed)} can be freed: sparkwright models prune")
    return "\n".join(map(visible, lines))


def _ours(thing: Item) -> bool:
    return thing.fault != "has no receipt"


def _state(thing: Item) -> str:
    if thing.removed:
        return "removed"
    used = f"used by {', '.join(thing.used_by)}" if thing.used_by else "not needed"
    if not _ours(thing):
        used = "no receipt: not known to be sparkwright's, left alone"
    return f"{used}; {thing.fault}" if thing.fault and _ours(thing) else used


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"

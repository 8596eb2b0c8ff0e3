"""HAProxy's map of services that sleep, and which one runs instead: the host's own state.

A file that a reload reads, and the map of the worker that takes new requests: both are as
active.json says, so that nobody is turned away who needs not be.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from sparkwright.host.lib import exclusive, files
from sparkwright.host.proxy import runtime_api as haproxy

#: HAProxy's map of services that sleep, beside its configuration.
ASLEEP_MAP = "asleep.map"


_VERSION = re.compile(r"New version created: ([0-9]+)")


def write(place: Path) -> None:
    """Have the file as the host's state says; ``state`` lies beside the proxies' directory."""
    sleeping = exclusive.sleeping(place.parent.parent / "state")
    files.write(place, "".join(f"{name} {sleeping[name]}\n" for name in sorted(sleeping)), 0o644)


def tell(state: Path) -> None:
    """Have file and worker as the host's state says, in one step for those who ask."""
    place = state.parent / "gateway" / ASLEEP_MAP
    if not place.exists():
        return  # no proxy has it, or not yet
    write(place)
    admin = exclusive.groups(state).admin
    with contextlib.suppress(OSError):  # HAProxy reads the file when it starts
        made = _VERSION.search(haproxy.ask(admin, f"prepare map {place}"))
        if made:
            for line in place.read_text().splitlines():
                haproxy.ask(admin, f"add map @{made[1]} {place} {line}")
            haproxy.ask(admin, f"commit map @{made[1]} {place}")

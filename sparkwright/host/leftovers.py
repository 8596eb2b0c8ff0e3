"""Removes secrets that version 0.1 left in files when its fetches had ended. Runs as root.

Since then a fetch gets them from systemd, for as long as it runs (lib/credentials.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparkwright.host.lib import systemd


@dataclass(frozen=True)
class LeftoversRequest:
    """Where they are looked for."""

    services_root: str


#: The hub's token, the peers' token, and accounts for registries, below the directory of state.
PATTERNS = ("hub-token", "share-token", "sparkwright-*/account")


def found(services_root: str) -> list[Path]:
    """Files with a secret that nothing of this version reads."""
    state = Path(services_root, "state")
    return sorted(path for pattern in PATTERNS for path in state.glob(pattern))


def in_use() -> bool:
    """Whether a fetch of that version may still read one."""
    units = ("sparkwright-fetch-*.service", "sparkwright-pull-*.service")
    states = systemd.shown(systemd.showing(*units).outcome().out)
    return any(one.get("ActiveState") in systemd.RUNNING for one in states.values())


def main(request: LeftoversRequest) -> list[str]:
    """Remove them, unless a fetch still runs: then the next run does. Returns what was removed."""
    if in_use():
        return []
    places = found(request.services_root)
    for place in places:
        place.unlink(missing_ok=True)
    return [str(place) for place in places]

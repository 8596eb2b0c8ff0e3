"""How far the ranks of a cluster's service are, as their programs write it down on each host."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.ranks import STATE, WAITING, RankState
from sparkwright.host.contracts.status import Health
from sparkwright.host.lib import documents


def state(home: str | Path) -> RankState | None:
    """Of the service with this directory; None for one of one host."""
    return documents.record(RankState, Path(home, STATE))


def unit(home: str | Path, shown: dict[str, str]) -> dict[str, str]:
    """What systemd shows of a unit; of a rank, ``NRestarts`` counts its failures alone."""
    found = state(home)
    return shown if found is None else {**shown, "NRestarts": str(found.failures)}


def missing(home: str | Path) -> str | None:
    """What a rank waits for, in words; None where it does not wait, or for one of one host."""
    found = state(home)
    if found is None or found.step != WAITING:
        return None
    return f"it waits for the other ranks: {'; '.join(found.missing) or 'nothing is known of them'}"


def health(home: str | Path) -> Health | None:
    """The health of a rank that can be told without a question: of a follower, which answers none,
    and of a head that waits. None for a service that has to be asked."""
    found = state(home)
    if found is None:
        return None
    if found.step == WAITING:
        return Health(None, said=missing(home) or "")
    return Health(200, said=f"rank {found.number} serves with its head") if found.number else None

"""What a release on this host must answer, as it is kept with it."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.records import decode
from sparkwright.host.contracts.smoke import SmokeRequest, from_gate
from sparkwright.host.lib import documents

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from typing import Any


def gate_of(said: object) -> SmokeRequest | None:
    """A release's smoke test, by this or an earlier version; None for what is none."""
    if not isinstance(said, dict):
        return None
    try:
        gate = decode(SmokeRequest, from_gate(said))
    except ValueError:
        return None
    return gate if 0 < gate.port < 65536 else None


def kept_gate(release: Path, known: dict[str, Any] | None = None) -> SmokeRequest | None:
    """The smoke test that is kept with a release.

    Args:
        known: what holds where the release does not say otherwise, as release.json has it.
    """
    note = (documents.read(release / "release.json") or {}).get("gate")
    return gate_of({**(known or {}), **(note if isinstance(note, dict) else {})})

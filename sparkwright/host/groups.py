"""Puts what a host must know of its exclusive groups in place, or takes it away. Runs as root."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.exclusive import ACTIVE, GROUPS, PlaceRequest
from sparkwright.host.lib import exclusive, files
from sparkwright.host.proxy import asleep


def main(request: PlaceRequest) -> list[str]:
    """Make it so. Which member runs stays what it is; the first one does where none is known."""
    state = Path(request.services_root, "state")
    if not request.files:
        for name in (GROUPS, ACTIVE):
            (state / name).unlink(missing_ok=True)
        return ["removed the exclusive groups"]
    for path, (text, mode) in request.files.items():
        files.write(Path(path), text, mode, parents=0o750)
    exclusive.activate(state, exclusive.running(state), "deploy", "the first of its group")
    asleep.tell(state)
    return ["wrote the exclusive groups"]

"""Puts what a host must know of its exclusive groups in place, or takes it away. Runs as root."""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.contracts.exclusive import ACTIVE, GROUPS, SCHEDULE, TIMER, PlaceRequest
from sparkwright.host.lib import documents, exclusive, files, systemd
from sparkwright.host.proxy import asleep

_OWN = (TIMER, SCHEDULE)


def main(request: PlaceRequest) -> list[str]:
    """Make it so. Which member runs stays what it is; the first one does where none is known."""
    state = Path(request.services_root, "state")
    before = [documents.text(systemd.UNITS / unit) for unit in _OWN]
    for path, (text, mode) in request.files.items():
        files.write(Path(path), text, mode, parents=0o750)
    _schedule(request, before)
    if not request.files:
        for name in (GROUPS, ACTIVE):
            (state / name).unlink(missing_ok=True)
        return ["removed the exclusive groups"]
    exclusive.activate(state, exclusive.running(state), "deploy", "the first of its group")
    asleep.tell(state)
    return ["wrote the exclusive groups"]


def _schedule(request: PlaceRequest, before: list[str | None]) -> None:
    """Have the timer as it was written, or none."""
    if str(systemd.UNITS / TIMER) not in request.files:
        if any(text is not None for text in before):
            systemd.remove(_OWN)
        return
    now = [documents.text(systemd.UNITS / unit) for unit in _OWN]
    changed = any(was not in (None, text) for was, text in zip(before, now, strict=True))
    if changed:
        systemd.reload()
    systemd.enable_timer(TIMER)
    if changed:
        systemd.systemctl("restart", TIMER)
    systemd.start(TIMER)

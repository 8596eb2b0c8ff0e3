"""Puts what a host must know of its exclusive groups in place, or takes it away. Runs as root."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import documents, exclusive, files, systemd
from sparkwright.host.lib.exclusive import ACTIVE, GROUPS
from sparkwright.host.proxy import asleep

#: Units that are there while a group has a calendar.
TIMER, SCHEDULE = "sparkwright-schedule.timer", "sparkwright-schedule.service"


#: And those while a request activates a service: the socket that HAProxy sends it to.
SOCKET, WAKE = "sparkwright-wake.socket", "sparkwright-wake.service"


@dataclass(frozen=True)
class PlaceRequest:
    """The files of a host's groups, as they must be; without any, none are.

    Attributes:
        files: path -> text and mode.
    """

    services_root: str
    files: dict[str, tuple[str, int]] = field(default_factory=dict)


#: What starts a unit of ours, and that unit.
_TRIGGERS = ((TIMER, SCHEDULE), (SOCKET, WAKE))


def main(request: PlaceRequest) -> list[str]:
    """Make it so. Which member runs stays what it is; the first one does where none is known."""
    state = Path(request.services_root, "state")
    before = {unit: _text(unit) for pair in _TRIGGERS for unit in pair}
    written = [
        path
        for path, (text, mode) in request.files.items()
        if files.write(Path(path), text, mode, parents=0o750)
    ]
    for pair in _TRIGGERS:
        _have(pair, request, before, renewed=any(path.endswith(".py") for path in written))
    if not request.files:
        for name in (GROUPS, ACTIVE):
            (state / name).unlink(missing_ok=True)
        return ["removed the exclusive groups"]
    exclusive.activate(state, exclusive.running(state), "deploy", "the first of its group")
    asleep.tell(state)
    return ["wrote the exclusive groups"]


def _have(
    pair: tuple[str, str], request: PlaceRequest, before: dict[str, str | None], *, renewed: bool
) -> None:
    """Have a trigger and its unit as they were written, or neither.

    Args:
        renewed: whether another program lies here than one that may run.
    """
    trigger, unit = pair
    if str(systemd.UNITS / trigger) not in request.files:
        if any(before[one] is not None for one in pair):
            systemd.remove(pair)
        return
    changed = any(before[one] not in (None, _text(one)) for one in pair)
    if changed:
        systemd.reload()
    systemd.want_at_boot(trigger, wanted=True)
    if changed:
        systemd.systemctl("restart", trigger)
    systemd.start(trigger)
    if renewed or changed:
        systemd.systemctl("try-restart", unit)


def _text(unit: str) -> str | None:
    return documents.text(systemd.UNITS / unit)

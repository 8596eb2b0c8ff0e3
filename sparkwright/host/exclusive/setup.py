"""Install or remove the files and units of a host's exclusive groups. The program runs as root."""

from pathlib import Path

from sparkwright.host.lib import exclusive, records, systemd
from sparkwright.host.proxy import place

#: Units of a group with a calendar.
TIMER, SCHEDULE = "sparkwright-schedule.timer", "sparkwright-schedule.service"
#: Units of a group with a service that starts on request: HAProxy sends requests to the socket.
SOCKET, WAKE = "sparkwright-wake.socket", "sparkwright-wake.service"


@records.dataclass(frozen=True)
class SetupRequest:
    """Files required for a host's groups; without files, the installation is removed.

    Attributes:
        files: path -> text and mode.
    """

    services_root: str
    files: dict[str, tuple[str, int]] = records.field(default_factory=dict)


def main(request: SetupRequest) -> list[str]:
    """Apply the request. The active member of a group stays active; initially the first member is
    active.
    """
    state = Path(request.services_root, "state")
    changed = systemd.write_files(request.files, parents=0o750)
    for trigger, unit in ((TIMER, SCHEDULE), (SOCKET, WAKE)):
        _set_up(trigger, unit, request, changed)
    if not request.files:
        for name in (exclusive.GROUPS, exclusive.ACTIVE):
            (state / name).unlink(missing_ok=True)
        return ["removed the exclusive groups"]
    exclusive.activate(state, exclusive.running(state), "deploy", "the first service of its group")
    place.tell_sleeping(state)
    return ["wrote the exclusive groups"]


def _set_up(trigger: str, unit: str, request: SetupRequest, changed: set[str]) -> None:
    """Start a timer or socket if the request has its file; otherwise remove the timer or socket and
    its unit.
    """
    paths = {str(systemd.UNITS / name) for name in (trigger, unit)}
    if str(systemd.UNITS / trigger) not in request.files:
        if any(Path(path).exists() for path in paths):
            systemd.remove((trigger, unit))
        return
    systemd.want_at_boot(trigger, wanted=True)
    if changed & paths:
        systemd.systemctl("restart", trigger)
    systemd.start(trigger)
    if any(path.endswith(".py") or path in paths for path in changed):
        systemd.systemctl("try-restart", unit)

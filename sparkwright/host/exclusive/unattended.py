"""Activate members of exclusive groups without a controller, like any other run.

``sparkwright-schedule.timer`` runs ``main`` at each time of the host's calendar, or at the next
boot if the host was off at that time. A service that a user activates between two of these times
runs until the next time. A request for a service that sleeps calls ``run`` (on_request.py).

An activation holds the host's lock until the switch has ended. A deploy that starts during a switch
names the lock's holder; during a deploy the caller tries again later. The program runs on the host
as root.
"""

import os
import secrets
import socket
import time
from pathlib import Path

from sparkwright.host import control, lock
from sparkwright.host.exclusive import activate
from sparkwright.host.exclusive.activate import ActivateRequest
from sparkwright.host.lib import documents, exclusive, systemd
from sparkwright.host.release import REVERTED

#: Exit code of an activation that systemd must repeat (sysexits.h).
AGAIN = 75
_OURS = "on the host itself, boot "
_BUSY = "the host is busy"
#: Seconds between two checks of a switch.
_LOOK = 0.5


def main(services_root: str) -> int:
    """Activate the members that the calendar names now. Returns 0, or the exit code that makes
    systemd retry in a minute.
    """
    root, now = Path(services_root), time.localtime()
    minute = (now.tm_wday * 24 + now.tm_hour) * 60 + now.tm_min
    runs = exclusive.running(root / "state")
    due_services = [
        exclusive.due(group, minute)
        for name, group in exclusive.groups(root / "state").groups.items()
        if group.windows and exclusive.due(group, minute) != runs[name]
    ]
    reasons = [run(root, service, "calendar") for service in due_services]
    return AGAIN if any(reasons) else 0


def run(root: Path, service: str, by: str, *, rests: bool = False) -> str:
    """Activate a service, or stop an idle service, and wait for the end.

    Returns the reason why nothing changed, as text for clients; empty if the switch succeeded.
    """
    state = root / "state"
    owner = lock.Owner(secrets.token_hex(8), f"{by}@{socket.gethostname()}", _boot(), os.getpid())
    answer = lock.take(state, owner)
    if not answer.held and answer.by and _is_over(answer.by):
        answer = lock.take(state, owner, answer.by)
    if not answer.held:
        print(f"{answer.by.by if answer.by else 'somebody'} is at work on this host", flush=True)
        return _BUSY
    try:
        request = ActivateRequest(service, str(root), owner.by, by, owner.token, rests=rests)
        activated = activate.main(request)
        for line in activated.faults:
            print(f"{service}: {line}", flush=True)
        if activated.switch:
            begun = "idle, so it stops" if rests else f"starts, and {activated.was} stops"
            print(f"{service}: {begun}", flush=True)
            text, reason = _ended(state, activated.switch)
            print(text, flush=True)
            return reason
        return _BUSY if activated.faults else ""
    finally:
        lock.release(state, str(owner.token))


def _is_over(owner: lock.Owner) -> bool:
    """Return whether a lock is left from this program's own run that a power cut or a signal
    ended.
    """
    if not (owner.machine or "").startswith(_OURS):
        return False
    return owner.machine != _boot() or not Path(f"/proc/{owner.pid}").exists()


def _boot() -> str:
    return _OURS + Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _ended(state: Path, switch: str) -> tuple[str, str]:
    """Wait for the end of a switch. Returns the switch's result, and the reason if it changed
    nothing.
    """
    while True:
        runs = systemd.unit(control.SWITCH).get("ActiveState") in systemd.RUNNING
        journal = documents.read(state / "switch/progress.json") or {}
        if journal.get("id") == switch and journal.get("step") == "ended":
            result, reasons = journal.get("result"), journal.get("reasons", [])
            untouched = result == REVERTED and not journal.get("checks")
            return f"the switch has ended: {result}", "; ".join(reasons) if untouched else ""
        if not runs:
            return "the switch was interrupted", ""
        time.sleep(_LOOK)

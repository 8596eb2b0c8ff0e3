"""Activates the members of this host's exclusive groups that its calendar names now.

Run by ``sparkwright-schedule.timer`` when a time of the calendar has come, also one that came while
the host was off. What was activated by hand meanwhile runs until the next of these times.
"""

from __future__ import annotations

import time
from pathlib import Path

from sparkwright.host.exclusive import unattended
from sparkwright.host.lib import exclusive
from sparkwright.host.lib.exclusive import due


def main(services_root: str) -> int:
    """Do it. Returns 0, or the code that has systemd try again in a minute."""
    root, now = Path(services_root), time.localtime()
    minute = (now.tm_wday * 24 + now.tm_hour) * 60 + now.tm_min
    runs = exclusive.running(root / "state")
    due_services = [
        due(group, minute)
        for name, group in exclusive.groups(root / "state").groups.items()
        if group.windows and due(group, minute) != runs[name]
    ]
    return max((unattended.run(root, service, "calendar") for service in due_services), default=0)

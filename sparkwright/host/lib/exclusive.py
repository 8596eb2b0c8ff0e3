"""Which services of this host are of a group, which of them runs, and which sleep."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from sparkwright.host.contracts.exclusive import (
    ACTIVE,
    GROUPS,
    Active,
    ActiveServices,
    Groups,
    member,
)
from sparkwright.host.contracts.records import encode
from sparkwright.host.lib import documents, files, systemd

#: Beside a service's releases, while it sleeps.
ASLEEP = "asleep"


def groups(state: Path) -> Groups:
    """What the last deploy said; nothing of a file that another user than root wrote."""
    found = files.record(Groups, state / GROUPS) or Groups()
    # A group without members is none.
    return replace(found, groups={name: one for name, one in found.groups.items() if one.members})


def active(state: Path) -> dict[str, Active]:
    """What was activated, by group."""
    return (files.record(ActiveServices, state / ACTIVE) or ActiveServices()).groups


def running(state: Path) -> dict[str, str]:
    """The member of each group that runs."""
    return _running(state, groups(state))


def sleeping(state: Path) -> dict[str, str]:
    """Services that sleep, and which one runs instead."""
    known = groups(state)
    runs = _running(state, known)
    return {
        one: runs[name]
        for name, group in known.groups.items()
        for one in group.members
        if one != runs[name]
    }


def _running(state: Path, known: Groups) -> dict[str, str]:
    chosen = active(state)
    return {name: member(one, chosen.get(name)) for name, one in known.groups.items()}


def activate(state: Path, chosen: dict[str, str], by: str, why: str) -> None:
    """Write down which members run from here on; of those that do already nothing changes."""
    known, at = active(state), round(time.time())
    changed = {
        group: Active(service, by, at, why)
        for group, service in chosen.items()
        if group not in known or known[group].service != service
    }
    if changed:
        text = json.dumps(encode(ActiveServices({**known, **changed}))) + "\n"
        files.write(state / ACTIVE, text, 0o600)


def mark(home: Path, unit: str, *, asleep: bool) -> None:
    """Have a boot and a restart of Docker pass a service by, without a reload of systemd, or not:
    its unit asks for this file."""
    place = home / ASLEEP
    if not asleep:
        place.unlink(missing_ok=True)
        return
    files.write(place, "another one of its group runs\n", 0o644)
    if str(place) not in (documents.text(systemd.UNITS / unit) or ""):
        systemd.want_at_boot(unit, wanted=False)  # a release of before it was of a group

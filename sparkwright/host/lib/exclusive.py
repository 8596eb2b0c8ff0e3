"""Which services of this host are of a group, which of them runs, and which sleep."""

from __future__ import annotations

import contextlib
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
from sparkwright.host.contracts.records import decode, encode
from sparkwright.host.lib import documents, files, systemd

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from typing import TypeVar

    T = TypeVar("T")

#: Beside a service's releases, while it sleeps.
ASLEEP = "asleep"


def groups(state: Path) -> Groups:
    """What the last deploy said; nothing of a file that another user than root wrote."""
    found = _read(Groups, state / GROUPS) or Groups()
    # A group without members is none.
    return replace(found, groups={name: one for name, one in found.groups.items() if one.members})


def active(state: Path) -> dict[str, Active]:
    """What was activated, by group."""
    return (_read(ActiveServices, state / ACTIVE) or ActiveServices()).groups


def running(state: Path) -> dict[str, str]:
    """The member of each group that runs."""
    known = active(state)
    return {name: member(one, known.get(name)) for name, one in groups(state).groups.items()}


def sleeping(state: Path) -> dict[str, str]:
    """Services that sleep, and which one runs instead."""
    runs = running(state)
    return {
        one: runs[name]
        for name, group in groups(state).groups.items()
        for one in group.members
        if one != runs[name]
    }


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


def _read(cls: type[T], place: Path) -> T | None:
    found = files.read(place)
    with contextlib.suppress(ValueError, RecursionError):
        return None if found is None else decode(cls, json.loads(found))
    return None

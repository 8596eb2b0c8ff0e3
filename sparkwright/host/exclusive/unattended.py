"""Activates a member of an exclusive group without a controller, as one run among others.

It holds the host's lock until the switch has ended: a deploy that comes meanwhile names it, and one
that is at work is waited for by whoever calls this again. Runs on the host as root.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from pathlib import Path

from sparkwright.host import lock
from sparkwright.host.control import SWITCH
from sparkwright.host.exclusive import activate
from sparkwright.host.exclusive.activate import ActivateRequest
from sparkwright.host.lib import documents, systemd
from sparkwright.host.lock import Owner

#: Exit code of what is to be tried again (sysexits.h).
AGAIN = 75
_OURS = "on the host itself, boot "
#: Seconds between two looks at a switch.
_LOOK = 0.5


def run(root: Path, service: str, by: str) -> int:
    """Activate it, and wait for the end. Returns 0, or ``AGAIN`` where something was in the way."""
    state = root / "state"
    owner = Owner(secrets.token_hex(8), f"{by}@{socket.gethostname()}", _boot(), os.getpid())
    if not _take(state, owner):
        return AGAIN
    try:
        request = ActivateRequest(service, str(root), owner.by, by, owner.token)
        answer = activate.main(request)
        for line in answer.wrong:
            print(f"{service}: {line}", flush=True)
        if answer.switch:
            print(f"{service}: {answer.was} makes room for it", flush=True)
            _wait(state, answer.switch)
        return AGAIN if answer.wrong else 0
    finally:
        lock.release(state, str(owner.token))


def _take(state: Path, owner: Owner) -> bool:
    answer = lock.take(state, owner, breaking=False, instead_of=None)
    if not answer.held and answer.by and _is_over(answer.by):
        answer = lock.take(state, owner, breaking=True, instead_of=answer.by.token)
    if not answer.held:
        print(f"{answer.by.by if answer.by else 'somebody'} is at work on this host", flush=True)
    return answer.held


def _is_over(owner: Owner) -> bool:
    """Whether a lock is one of ours of a run that a power cut or a signal ended."""
    if not (owner.machine or "").startswith(_OURS):
        return False
    return owner.machine != _boot() or not Path(f"/proc/{owner.pid}").exists()


def _boot() -> str:
    return _OURS + Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _wait(state: Path, switch: str) -> None:
    """Wait for the end of a switch, and print its result."""
    while True:
        runs = systemd.unit(SWITCH).get("ActiveState") in systemd.RUNNING
        journal = documents.read(state / "switch/progress.json") or {}
        if journal.get("id") == switch and journal.get("step") == "ended":
            print(f"the switch has ended: {journal.get('result')}", flush=True)
            return
        if not runs:
            print("the switch was interrupted", flush=True)
            return
        time.sleep(_LOOK)

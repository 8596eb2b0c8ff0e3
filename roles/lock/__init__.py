"""One run at a time per host: a lock on the host with owner and age, taken before a first change.

A host that is as planned is never locked, so that looking costs nothing. The lock of a run that
died on this machine is taken over; any other is broken on request (``break_lock``).
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyinfra.api.host import Host

from roles import remote, site
from sparkwright.host import lock as program
from sparkwright.text.lock_owner import told


def _machine() -> str:
    """Where process ids mean the same: containers may share an id, but not a process namespace."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text().strip())
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


_OWNER = {
    "token": secrets.token_hex(8),
    "by": f"{getpass.getuser()}@{socket.gethostname()}",
    "machine": _machine(),
    "pid": os.getpid(),
}


def take(host: Host, run: site.HostRun) -> None:
    """Hold the host from here on.

    Raises:
        HostError: naming the owner, when somebody else has it, or changed the host meanwhile.
    """
    if run.locked:
        return
    answer = _ask(host, run, {"take": _OWNER})
    if not answer["held"] and (_is_dead(answer["by"]) or run.plan.settings.break_lock):
        host.log(f"taking over the lock of {told(answer['by'], answer['now'])}")
        answer = _ask(host, run, {"take": _OWNER, "instead_of": answer["by"]["token"]})
    if not answer["held"]:
        raise remote.HostError(_busy(answer["by"], answer["now"]))
    run.locked = True
    if answer.get("last") != run.seen.last_lock:
        raise remote.HostError("somebody else changed this host since it was looked at: run again")


def in_the_way(run: site.HostRun) -> str | None:
    """Who else is at work on the host, by the probe; None where its lock can be taken."""
    holder = run.seen.lock
    if not holder or run.plan.settings.break_lock or _is_dead(holder):
        return None
    return _busy(holder, run.seen.time)


def _busy(owner: dict[str, Any], now: float) -> str:
    return (
        f"{told(owner, now)} is at work on this host: "
        "wait, or break the lock with --data break_lock=True"
    )


def give(host: Host, run: site.HostRun) -> None:
    """Let others have the host. A connection that is lost leaves the lock to the next run."""
    if run.locked:
        run.locked = False
        with suppress(remote.HostError):
            _ask(host, run, {"give": _OWNER["token"]})


def _ask(host: Host, run: site.HostRun, what: dict[str, Any]) -> dict[str, Any]:
    state = f"{run.plan.settings.services_root}/state"
    answer: dict[str, Any] = remote.ask(
        host, "sparkwright-lock", program, {"state": state, **what}, timeout=30
    )
    return answer


def _is_dead(owner: dict[str, Any]) -> bool:
    """Whether a lock is a former run's of this machine that ended without giving it back."""
    if owner.get("machine") != _OWNER["machine"]:
        return False
    try:
        os.kill(int(owner["pid"]), 0)
    except (ProcessLookupError, ValueError, KeyError):
        return True
    except PermissionError:
        return False
    return False

"""Lock on a host, with owner and age. A run takes the lock before its first change, and only one
run has the lock at a time.

A host without pending changes is never locked, so a run without changes costs nothing. The lock of
a run that died on this machine is taken over; any other lock is broken on request (``break_lock``).
"""

import getpass
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyinfra.api.host import Host

from sparkwright.facts import hooks
from sparkwright.facts.answers import HostError, invalid
from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.host import lock as program
from sparkwright.host.lib.records import replace
from sparkwright.host.lock import LockAnswer, LockRequest, Owner
from sparkwright.text.lock_owner import described

#: The kernel's limit of process ids.
_MOST_PIDS = 1 << 22


def _machine() -> str:
    """Namespace of process ids: containers may share a machine id, but not a process namespace."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text().strip())
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


OWNER = Owner(
    token=secrets.token_hex(8),
    by=f"{getpass.getuser()}@{socket.gethostname()}",
    machine=_machine(),
    pid=os.getpid(),
)


def take(host: Host, *, emergency: bool = False) -> None:
    """Hold the host's lock from now on until the connection is closed.

    With ``break_lock`` in the host's data, the lock is taken from another run even if that run
    still works.

    Args:
        emergency: whether to continue without the lock if another run has it.

    Raises:
        HostError: another run has the lock, or has changed the host meanwhile; the text names the
            lock's owner.
    """
    host_memory = memory(host)
    if host_memory.locked:
        return
    owner = replace(OWNER, batch=host_memory.batch)
    answer = _ask(host, take=owner)
    if not answer.held and answer.by and (_is_dead(answer.by) or host_memory.break_lock):
        host.log(f"taking over the lock of {described(answer.by, answer.now)}")
        answer = _ask(host, take=owner, instead_of=answer.by)
    if not answer.held:
        if answer.by is None:
            invalid("sparkwright-lock", "another run has the lock")
        if emergency:
            by = described(answer.by, answer.now)
            host.log(f"{by} is at work on this host: continuing without the lock")
            return
        raise HostError(_busy(answer.by, answer.now))
    host_memory.locked = host_memory.services_root
    hooks.before_disconnecting(host, lambda: release(host))
    here = (
        host_memory.asked is not None
        and host_memory.asked.services_root == host_memory.services_root
    )
    if here and host_memory.observation and answer.last != host_memory.observation.last_lock:
        raise HostError("another run changed this host since its observation: rerun the command")


def in_the_way(host: Host) -> str | None:
    """Other owner of the host's lock, as observed; None if the lock can be taken."""
    host_memory = memory(host)
    holder = host_memory.observation.lock if host_memory.observation else None
    if not host_memory.observation or holder is None or host_memory.break_lock or _is_dead(holder):
        return None
    return _busy(holder, host_memory.observation.time)


def release(host: Host) -> None:
    """Release the host for other runs.

    A lost connection leaves the lock to the next run.
    """
    host_memory = memory(host)
    if host_memory.locked:
        host_memory.locked = None
        with suppress(HostError):
            _ask(host, release=OWNER.token)


def _busy(owner: Owner, now: float) -> str:
    return (
        f"{described(owner, now)} is at work on this host: "
        "wait, or break the lock with --data break_lock=True"
    )


def _ask(host: Host, **wanted: Owner | str | None) -> LockAnswer:
    state: Any = {"state": f"{memory(host).services_root}/state", **wanted}
    return ask(host, program, LockRequest(**state), LockAnswer, timeout=30)


def _is_dead(owner: Owner) -> bool:
    """Return whether a lock belongs to a former run of this machine that ended without releasing
    the lock.
    """
    if owner.machine != OWNER.machine or owner.pid is None or not 0 < owner.pid < _MOST_PIDS:
        return False
    try:
        os.kill(owner.pid, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False

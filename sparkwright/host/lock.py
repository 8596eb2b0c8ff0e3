"""Lock that permits one run at a time on this host. The program runs on the host as root.

The lock is a file that names its owner, so that a refused run can name the owner. The file is
created in one step, as a hard link. To take the lock from a dead owner, a run must name that
owner's lock.
"""

import contextlib
import os
import time
from pathlib import Path

from sparkwright.host.lib import documents, files, trusted
from sparkwright.host.lib.records import dataclass, replace


@dataclass(frozen=True)
class Owner:
    """Owner of a host's lock, as in lock.json.

    Attributes:
        token: token of the run; None for a lock file that a power cut left empty.
        by: ``ann@laptop``.
        machine, pid: process of the run, to recognise a dead run.
        since: seconds since the epoch, by the host's clock; None before the host has written it.
        batch: place of the host in a roll-out: ``batch 2 of 3``; empty if nothing is switched.
    """

    token: str | None = None
    by: str = "somebody"
    machine: str | None = None
    pid: int | None = None
    since: float | None = None
    batch: str = ""


@dataclass(frozen=True)
class LockRequest:
    """Request to take or release the lock.

    Attributes:
        state: directory of the lock.
        take: the future owner; None to release.
        instead_of: owner whose lock is taken over; None to take only a free lock.
        release: token of the owner that releases the lock.
    """

    state: str
    take: Owner | None = None
    instead_of: Owner | None = None
    release: str | None = None


@dataclass(frozen=True)
class LockAnswer:
    """Result of a lock request: whether the run now has the lock.

    Attributes:
        by, now: the owner if it is another run, and the host's clock.
        last: token of the previous owner; None without a previous owner.
    """

    held: bool
    by: Owner | None = None
    now: float = 0.0
    last: str | None = None


HELD, LAST = "lock.json", "lock-last.json"


def take(state: Path, owner: Owner, instead_of: Owner | None = None) -> LockAnswer:
    """Take the lock, or return its owner."""
    trusted.take_over(state, 0o700)
    held = state / HELD
    # A lock file that a power cut left empty has no token: an ``instead_of`` without a token
    # takes this lock over.
    if instead_of and _owner(held).token == instead_of.token:
        held.unlink(missing_ok=True)
    new = state / f".{owner.token}"
    files.write_record(new, replace(owner, since=time.time()))
    try:
        os.link(new, held)
    except FileExistsError:
        now = time.time()
        holder = _owner(held)
        holder = replace(holder, since=now) if holder.since is None else holder
        return LockAnswer(holder.token == owner.token, holder, now)
    finally:
        new.unlink(missing_ok=True)
    return LockAnswer(True, last=_owner(state / LAST).token)


def release(state: Path, token: str) -> None:
    """Release the lock; its file stays and names the last owner."""
    if _owner(state / HELD).token == token:
        with contextlib.suppress(OSError):
            (state / HELD).replace(state / LAST)


def _owner(path: Path) -> Owner:
    """Return the current or last owner of the lock; an empty ``Owner`` if the file is missing or
    damaged.
    """
    return documents.record(Owner, path) or Owner()


def main(request: LockRequest) -> LockAnswer:
    """Take or release the lock."""
    state = Path(request.state)
    if request.release is not None:
        release(state, request.release)
    return take(state, request.take, request.instead_of) if request.take else LockAnswer(False)

"""Lock that permits one run at a time on this host. Runs on the host as root.

The lock is a file that names its owner, so that others can name it. It is made whole and in one
step (a hard link), and taken from a dead owner only by naming that owner's lock.
"""

from __future__ import annotations

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
        token: of the run; None for a lock that a power cut left empty.
        by: ``ann@laptop``.
        machine, pid: process of the run, so that a dead run is recognised.
        since: seconds since the epoch, by the host's clock; None before the host has written it.
    """

    token: str | None = None
    by: str = "somebody"
    machine: str | None = None
    pid: int | None = None
    since: float | None = None


@dataclass(frozen=True)
class LockRequest:
    """Take the lock, or release it.

    Attributes:
        state: directory of the lock.
        take: who wants it.
        instead_of: owner whose lock is taken over; None takes a free one alone.
        release: token of the owner who lets others run.
    """

    state: str
    take: Owner | None = None
    instead_of: Owner | None = None
    release: str | None = None


@dataclass(frozen=True)
class LockAnswer:
    """Whether the lock is ours now.

    Attributes:
        by: who has it otherwise, and now: the host's clock then.
        last: token of the owner before; None if there was none.
    """

    held: bool
    by: Owner | None = None
    now: float = 0.0
    last: str | None = None


HELD, LAST = "lock.json", "lock-last.json"


def take(state: Path, owner: Owner, instead_of: Owner | None = None) -> LockAnswer:
    """Take the lock, or return who has it."""
    trusted.take_over(state, 0o700)
    held = state / HELD
    # A lock that a power cut left empty has no token, and is broken by None.
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
    """Let others run; the lock stays as the mark of who was here last."""
    if _owner(state / HELD).token == token:
        with contextlib.suppress(OSError):
            (state / HELD).replace(state / LAST)


def _owner(path: Path) -> Owner:
    """Current or last owner of the lock; an empty ``Owner`` if the file is missing or torn."""
    return documents.record(Owner, path) or Owner()


def main(request: LockRequest) -> LockAnswer:
    """Take or release it."""
    state = Path(request.state)
    if request.release is not None:
        release(state, request.release)
    return take(state, request.take, request.instead_of) if request.take else LockAnswer(False)

"""One run at a time on a host: who holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """Who holds a host, as lock.json has it.

    Attributes:
        token: of the run; None for a lock that a power cut left empty.
        by: ``ann@laptop``.
        machine, pid: where the run is, so that one which died there is known.
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
        breaking: whether the lock of the owner named by ``instead_of`` is taken over.
        release: token of the owner who lets others run.
    """

    state: str
    take: Owner | None = None
    breaking: bool = False
    instead_of: str | None = None
    release: str | None = None


@dataclass(frozen=True)
class LockAnswer:
    """Whether the lock is ours now.

    Attributes:
        by: who has it otherwise, and now: the host's clock then.
        last: token of the owner before; None where there was none.
    """

    held: bool
    by: Owner | None = None
    now: float = 0.0
    last: str | None = None

"""Taking a host out of every pool, and putting it back."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwright.host.contracts.marks import Maintenance
from sparkwright.host.contracts.proxies import Sockets


@dataclass(frozen=True)
class MaintenanceRequest:
    """Begin or end it.

    Attributes:
        on: whether it begins.
        sockets: HAProxy's.
        notice_seconds: until load balancers in front have seen that a service leaves.
        drain_seconds: at most, until running requests have ended.
    """

    on: bool
    sockets: Sockets
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    notice_seconds: float = 7.0
    drain_seconds: float = 600.0


@dataclass(frozen=True)
class MaintenanceAnswer:
    """What was done, and what the host is now.

    Attributes:
        now: None where it is not in maintenance.
        done, left: in words: what was done, and what of it could not be.
        wrong: why it stays in maintenance, as lines.
    """

    now: Maintenance | None
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

"""Starting, stopping and restarting services by request."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.proxies import Sockets

START, STOP, RESTART = "start", "stop", "restart"


@dataclass(frozen=True)
class ControlRequest:
    """What is done to which services.

    Attributes:
        action: start, stop or restart.
        sockets: HAProxy's.
        services: names, those among them that are here; None for every one.
        now: whether running requests are cut off, and a switch that is under way is ended.
        keep: whether what is stopped stays so over a boot.
        wait: whether what is started must answer.
        notice_seconds: until load balancers in front have seen that a service leaves.
        drain_seconds: at most, until running requests have ended.
    """

    action: str
    sockets: Sockets
    services: tuple[str, ...] | None = None
    services_root: str = "/opt/sparkwright"
    by: str = "somebody"
    why: str = ""
    now: bool = False
    keep: bool = False
    wait: bool = True
    notice_seconds: float = 7.0
    drain_seconds: float = 600.0


@dataclass(frozen=True)
class ControlAnswer:
    """What was done.

    Attributes:
        known: every service of the host.
        done: service -> what was done, in words.
        wrong: what went wrong, as lines.
    """

    known: tuple[str, ...]
    done: dict[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()

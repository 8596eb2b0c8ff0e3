"""A rank of a service that several hosts serve together: rank.json beside its release, and how far
it is, in rank-state.json beside its releases. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

#: In a service's directory: how far its rank is.
STATE = "rank-state.json"
#: In the same place: variables of the engine, as its host found the fabric at its last start.
FABRIC = "fabric.env"
WAITING, SERVING = "waiting", "serving"


@dataclass(frozen=True)
class RankConfig:
    """What a rank's program goes by.

    Attributes:
        release: that it belongs to.
        home: the service's directory on this host.
        number: 0 is the head.
        hosts, addresses: of all ranks, in their order.
        port: where the head's engine gathers the ranks; the next one is the rank program's.
        secrets: file with the key by which the ranks know each other.
        command: starts the engine, and ends with it.
        model: what the head is asked for, at ``engine_port`` of this host.
        boot_seconds: until the head generates for the first time.
        shared: whether clients and others reach the host on the same network.
        shape: how the ConnectX-7 of the hosts are cabled; None on a plain network.
        environment: what the engine gets of the fabric where nothing of it is to be seen.
    """

    service: str
    unit: str
    release: str
    home: str
    number: int
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    port: int
    secrets: str
    command: tuple[str, ...]
    model: str
    engine_port: int
    boot_seconds: float
    shared: bool = False
    shape: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RankState:
    """How far a rank is.

    Attributes:
        step: waiting or serving. A rank serves while the engines of all ranks run.
        since: seconds since the epoch.
        missing: what is waited for, in words.
        session: of all ranks since the head's last start; another one after each.
        failures: how often an engine of this release ended by itself. What systemd counts of the
            unit are starts, and a rank starts with every session.
    """

    number: int = 0
    release: str = ""
    step: str = WAITING
    since: float = 0.0
    missing: tuple[str, ...] = ()
    session: str = ""
    failures: int = 0

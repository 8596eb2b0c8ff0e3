"""How far the ranks of a cluster's service are, as their programs write it down on each host."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import documents
from sparkwright.host.lib.http import Health, NoAnswer, Server, api_key
from sparkwright.host.lib.records import dataclass, field

#: In a service's directory: how far its rank is.
STATE = "rank-state.json"


#: In the same place: variables of the engine, as its host found the fabric at its last start.
FABRIC = "fabric.env"


WAITING, SERVING = "waiting", "serving"


@dataclass(frozen=True)
class RankConfig:
    """A rank's part of a cluster's service.

    Attributes:
        number: 0 is the head.
        hosts, addresses: of all ranks, in their order.
        port: where the head's engine gathers the ranks; the next one is the rank program's.
        command: starts the engine, and ends with it.
        shape: how the ConnectX-7 of the hosts are cabled; None on a plain network, on which
            clients and others reach the host, too.
        environment: what the engine gets of the fabric where nothing of it is to be seen.
    """

    number: int
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    port: int
    command: tuple[str, ...]
    shape: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RankState:
    """How far a rank is.

    Attributes:
        step: waiting or serving. A rank serves while the engines of all ranks run.
        since: seconds since the epoch.
        missing: what is waited for, as text.
        session: of all ranks since the head's last start; another one after each.
        failures: how often an engine of this release ended by itself. systemd counts starts of
            the unit, and a rank starts with every session.
    """

    number: int = 0
    release: str = ""
    step: str = WAITING
    since: float = 0.0
    missing: tuple[str, ...] = ()
    session: str = ""
    failures: int = 0


def state(home: str | Path) -> RankState | None:
    """Of the service with this directory; None for one of one host."""
    return documents.record(RankState, Path(home, STATE))


def unit(home: str | Path, shown: dict[str, str]) -> dict[str, str]:
    """systemd properties of a unit; ``NRestarts`` of a rank counts only its failures."""
    result = state(home)
    return shown if result is None else {**shown, "NRestarts": str(result.failures)}


def missing(home: str | Path) -> str | None:
    """Reason why a rank waits; None if it does not wait, or if its service has one host."""
    result = state(home)
    if result is None or result.step != WAITING:
        return None
    return (
        f"it waits for the other ranks: {'; '.join(result.missing) or 'nothing is known of them'}"
    )


def server(home: str | Path, address: str, port: int) -> Server:
    """The engine of the service with this directory, with its key: some want it for /metrics.

    A follower has none, and its secrets file is of another kind.
    """
    key, rank = None, state(home)
    if not (rank and rank.number):
        with suppress(OSError, KeyError):
            key = api_key(f"{home}/secrets.env")
    return Server(address, port, key)


def health(home: str | Path, server: Server | None = None) -> Health | None:
    """The health of a service: of a follower, which answers nobody, and of a head that waits by
    their state; of every other as its server says. None if that would have to be asked, and no
    server is given."""
    rank = state(home)
    if rank and rank.step == WAITING:
        return Health(None, message=missing(home) or "")
    if rank and rank.number:
        return Health(200, message=f"rank {rank.number} serves with its head")
    if server is None:
        return None
    began = time.monotonic()
    try:
        answer = server.get("/health")
    except NoAnswer as error:
        return Health(None, message=str(error)[:200])
    return Health(answer.status, time.monotonic() - began, answer.text[:200])

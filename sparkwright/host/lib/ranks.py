"""Progress of the ranks of a cluster's service, as their programs record it on each host."""

import time
from contextlib import suppress
from pathlib import Path

from sparkwright.host.lib import documents, http, records

#: File with the rank's progress, in the service's directory.
STATE = "rank-state.json"
#: File in the same directory that a follower touches when the head reports that the engines answer.
SERVED = "rank-served"
#: File in the same directory with the engine's variables for the host's fabric at the last start.
FABRIC = "fabric.env"


WAITING, SERVING = "waiting", "serving"


@records.dataclass(frozen=True)
class RankConfig:
    """A rank's part of a cluster's service.

    Attributes:
        number: 0 is the head.
        hosts, addresses: hosts and addresses of all ranks, in order.
        port: port at which the head's engine gathers the ranks; the rank program uses the next
            port.
        command: command that starts the engine, and ends with the engine.
        shape: cabling of the hosts' ConnectX-7; None on a plain network, which clients also use.
        environment: the engine's planned fabric variables, used if the host finds no fabric.
    """

    number: int
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    port: int
    command: tuple[str, ...]
    shape: str | None = None
    environment: dict[str, str] = records.field(default_factory=dict)


@records.dataclass(frozen=True)
class RankState:
    """Progress of a rank.

    Attributes:
        step: waiting or serving; a rank serves while the engines of all ranks run.
        since: seconds since the epoch.
        missing: missing conditions, as text.
        session: id of the session of all ranks; each start of the head begins a new session.
        failures: number of times that an engine of this release ended by itself. systemd counts
            starts of the unit, and a rank starts with every session.
    """

    number: int = 0
    release: str = ""
    step: str = WAITING
    since: float = 0.0
    missing: tuple[str, ...] = ()
    session: str = ""
    failures: int = 0


def state(home: str | Path) -> RankState | None:
    """Return the state of the service with this directory; None for a service of one host."""
    return documents.record(RankState, Path(home, STATE))


def unit(home: str | Path, shown: dict[str, str]) -> dict[str, str]:
    """Return systemd's properties of a unit; for a rank, ``NRestarts`` counts only its failures."""
    result = state(home)
    return shown if result is None else {**shown, "NRestarts": str(result.failures)}


def missing(home: str | Path) -> str | None:
    """Return why a rank waits; None if it does not wait or its service has one host."""
    result = state(home)
    if result is None or result.step != WAITING:
        return None
    return f"waits for the other ranks: {'; '.join(result.missing) or 'their state is unknown'}"


def server(home: str | Path, address: str, port: int) -> http.Server:
    """Return the engine of the service with this directory, with its key, which some engines
    require for /metrics.

    A follower's engine has no key, and its secrets file holds another key.
    """
    key, rank = None, state(home)
    if not (rank and rank.number):
        with suppress(OSError, KeyError):
            key = http.api_key(f"{home}/secrets.env")
    return http.Server(address, port, key)


def health(home: str | Path, server: http.Server | None = None) -> http.Health | None:
    """Return the health of a service: from its state for a follower and for a waiting head,
    otherwise from its server. The result is None if a server is needed and not given.
    """
    rank = state(home)
    if rank and rank.step == WAITING:
        return http.Health(None, message=missing(home) or "")
    if rank and rank.number:
        return http.Health(200, message=f"rank {rank.number} serves with its head")
    if server is None:
        return None
    began = time.monotonic()
    try:
        answer = server.get("/health")
    except http.NoAnswer as error:
        return http.Health(None, message=str(error)[:200])
    return http.Health(answer.status, time.monotonic() - began, answer.text[:200])

"""HAProxy's runtime API, and a service's place behind its host's proxy: how the service leaves and
returns without cutting requests off.

HAProxy has a map of sleeping services and the services that run instead: a file that a reload
reads, and a copy in the worker that takes new requests. The file and the copy follow active.json,
so that no request is refused needlessly.
"""

import contextlib
import csv
import re
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparkwright.host.lib import bounded, exclusive, files, records, waiting
from sparkwright.host.proxy.pool import ASLEEP_MAP, Pool

_VERSION = re.compile(r"New version created: ([0-9]+)")
SERVERS = "show stat -1 4 -1"
PROCESSES = "show proc"
STATES = "show servers state"


def ask(path: str, line: str) -> str:
    """Send a command to HAProxy's runtime API and return its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(path)
        connection.sendall(f"{line}\n".encode())
        # The master of HAProxy 3.0 answers, and waits for more commands until the connection is
        # half closed.
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("r") as answer:
            return str(bounded.read(answer, 8 * bounded.MIB))


def kept(answer: str, keep: Iterable[Sequence[str]]) -> str:
    """Return the saved state of drained or down servers whose address is unchanged: for other
    servers HAProxy would restore the old port (haproxy/haproxy#3296). The new configuration decides
    whether a server speaks TLS; otherwise HAProxy would send requests without TLS.
    """
    version, _, rest = answer.strip().partition("\n")
    head, *rows = rest.splitlines()
    names = head.removeprefix("# ").split()
    stay = []
    for row in rows:
        field = dict(zip(names, row.split(), strict=False))
        for backend, server, address, port, check, tls in keep:
            same = [field["be_name"], field["srv_name"], field["srv_port"], field["srv_check_port"]]
            at = (field["srv_addr"], field["srv_fqdn"])
            if same == [backend, server, port, check] and address in at:
                stay.append(" ".join({**field, "srv_use_ssl": tls}.values()))
    return "\n".join([version, head, *stay, ""])


@records.dataclass(frozen=True)
class ServerState:
    """State of a replica, as HAProxy reports it.

    Attributes:
        status: ``UP``, ``DOWN``, ``DRAIN``, ``MAINT``; ``UP 1/2`` has failed a check.
        running: number of running requests.
    """

    status: str
    running: int


def server_states(answer: str) -> dict[tuple[str, str], ServerState]:
    """Parse the answer to ``SERVERS``: state by proxy and replica."""
    lines = [line for line in answer.removeprefix("# ").splitlines() if line.strip()]
    return {
        (row["pxname"], row["svname"]): ServerState(row["status"], int(row["scur"] or 0))
        for row in csv.DictReader(lines)
    }


def workers(answer: str) -> list[int]:
    """Parse the answer to ``PROCESSES`` (master socket): the workers' ids.

    After a reload the former worker finishes its requests: a replica is idle if it is idle in all
    workers.
    """
    rows = (line.split() for line in answer.splitlines() if not line.startswith("#"))
    return [int(row[0]) for row in rows if len(row) > 1 and row[1] == "worker"]


def busy(master: str, proxy: str, replica: str) -> int:
    """Return the number of running requests on a replica over all workers, from the master's
    socket.
    """
    answers = (ask(master, f"@!{pid} {SERVERS}") for pid in workers(ask(master, PROCESSES)))
    states = (server_states(answer).get((proxy, replica)) for answer in answers)
    return sum(state.running for state in states if state)


def announce(pool: Pool) -> None:
    """Have the fleet's addresses send no new requests to the service."""
    # /health reports that the proxy is about to close, but the proxy still accepts requests.
    _command(pool, f"set server stay-{pool.proxy}/stay state maint")
    time.sleep(pool.notice_seconds)


def leave(pool: Pool) -> None:
    """Have the fleet's addresses send no new requests to the service, and wait for the end of
    running requests.
    """
    announce(pool)
    _command(pool, f"set server {pool.proxy}/{pool.replica} state drain")
    waiting.remaining(lambda: in_flight(pool), pool.drain_seconds)


def admit(pool: Pool) -> None:
    """Let the service receive requests again."""
    _command(pool, f"set server {pool.proxy}/{pool.replica} state ready")
    _command(pool, f"set server stay-{pool.proxy}/stay state ready")


def shut(pool: Pool) -> None:
    """Mark a stopped service as down; only its health check puts the service back into the pool.

    The call also ends a drain, so the service gets requests again even if systemd or Docker starts
    it.
    """
    _command(pool, f"set server {pool.proxy}/{pool.replica} health down")
    admit(pool)


def back(pool: Pool, seconds: float = 15.0) -> bool:
    """Wait until the proxy's checks let requests through; return False if this takes more than
    ``seconds``.

    The function does not wait if a user took the service out, or if there is no proxy.
    """
    return not waiting.remaining(lambda: _down(pool), seconds)


def _down(pool: Pool) -> bool:
    try:
        states = server_states(ask(pool.admin, SERVERS))
    except (OSError, ValueError, KeyError):
        return False
    state = states.get((pool.proxy, pool.replica))
    return state is not None and state.status.startswith("DOWN")


def _command(pool: Pool, line: str) -> None:
    with contextlib.suppress(OSError):
        ask(pool.admin, line)


def last_request(pool: Pool) -> str:
    """Return HAProxy's mark of the last request with a body; each of these requests changes the
    mark.
    """
    with contextlib.suppress(OSError):
        return ask(pool.admin, f"get var proc.last_{pool.proxy.replace('-', '_')}")
    return ""


def in_flight(pool: Pool) -> int:
    """Return the number of requests that the service is working on."""
    try:
        return busy(pool.master, pool.proxy, pool.replica)
    except TimeoutError:
        return 1  # the state is unknown: requests may still run
    except (OSError, ValueError, KeyError):
        return 0  # without a proxy there are no requests


def write_sleeping(path: Path) -> None:
    """Write the map of sleeping services from the host's state; ``state`` is beside the proxies'
    directory.
    """
    sleeping = exclusive.sleeping(path.parent.parent / "state")
    files.write(path, "".join(f"{name} {sleeping[name]}\n" for name in sorted(sleeping)), 0o644)


def tell_sleeping(state: Path) -> None:
    """Update HAProxy's map of sleeping services, in its file and its process."""
    path = state.parent / "gateway" / ASLEEP_MAP
    if not path.exists():
        return  # no proxy uses the map yet
    write_sleeping(path)
    admin = exclusive.groups(state).admin
    with contextlib.suppress(OSError):  # HAProxy reads the file when it starts
        if made := _VERSION.search(ask(admin, f"prepare map {path}")):
            for line in path.read_text().splitlines():
                ask(admin, f"add map @{made[1]} {path} {line}")
            ask(admin, f"commit map @{made[1]} {path}")

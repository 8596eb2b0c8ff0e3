"""HAProxy's runtime API: asking it, and reading what it says."""

from __future__ import annotations

import csv
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparkwright.host.lib import bounded

SERVERS = "show stat -1 4 -1"
PROCESSES = "show proc"
STATES = "show servers state"


def ask(place: str, line: str) -> str:
    """Send a command to HAProxy's runtime API and return its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(place)
        connection.sendall(f"{line}\n".encode())
        # The master of HAProxy 3.0 answers, and waits for more commands until nothing can come.
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("r") as answer:
            return str(bounded.read(answer, 8 * bounded.MIB))


def kept(answer: str, keep: Iterable[Sequence[str]]) -> str:
    """Drained or down servers, of those that keep their address: for the others HAProxy would take
    the old port from this state (haproxy/haproxy#3296). Whether a server speaks TLS comes from
    the new configuration: the former worker's value would make HAProxy send requests in clear."""
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


@dataclass(frozen=True)
class ServerState:
    """A replica as HAProxy sees it.

    Attributes:
        status: ``UP``, ``DOWN``, ``DRAIN``, ``MAINT``; ``UP 1/2`` is on its way down.
        running: requests that it works on now.
    """

    status: str
    running: int


def server_states(answer: str) -> dict[tuple[str, str], ServerState]:
    """The answer to ``SERVERS``, by proxy and replica."""
    lines = [line for line in answer.removeprefix("# ").splitlines() if line.strip()]
    return {
        (row["pxname"], row["svname"]): ServerState(row["status"], int(row["scur"] or 0))
        for row in csv.DictReader(lines)
    }


def workers(answer: str) -> list[int]:
    """The answer to ``PROCESSES`` (master socket): the workers' ids.

    After a reload the former worker goes on with the requests that it has: a replica is idle
    when it is so in all of them.
    """
    rows = (line.split() for line in answer.splitlines() if not line.startswith("#"))
    return [int(row[0]) for row in rows if len(row) > 1 and row[1] == "worker"]


def busy(master: str, proxy: str, replica: str) -> int:
    """The requests on a replica now, in every worker; read from the master's socket."""
    answers = (ask(master, f"@!{pid} {SERVERS}") for pid in workers(ask(master, PROCESSES)))
    states = (server_states(answer).get((proxy, replica)) for answer in answers)
    return sum(state.running for state in states if state)

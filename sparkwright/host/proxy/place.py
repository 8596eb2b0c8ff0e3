"""The host's own proxy in front of a service: how to leave it and come back without a cut.

HAProxy also knows which services sleep, and which one runs instead, by a map: a file that a reload
reads, and the map of the worker that takes new requests. Both are as active.json says, so that
nobody is turned away who needs not be.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from sparkwright.host.lib import exclusive, files
from sparkwright.host.lib.waiting import remaining
from sparkwright.host.proxy import runtime_api as haproxy
from sparkwright.host.proxy.pool import ASLEEP_MAP, Pool

_VERSION = re.compile(r"New version created: ([0-9]+)")


def leave(pool: Pool) -> None:
    """Have load balancers in front send nothing new, and wait for the end of what runs."""
    # /health says that the proxy is about to close; it still takes what comes.
    _command(pool, f"set server stay-{pool.proxy}/stay state maint")
    time.sleep(pool.notice_seconds)
    _command(pool, f"set server {pool.proxy}/{pool.replica} state drain")
    remaining(lambda: _busy(pool), pool.drain_seconds)


def admit(pool: Pool) -> None:
    """Take requests again."""
    _command(pool, f"set server {pool.proxy}/{pool.replica} state ready")
    _command(pool, f"set server stay-{pool.proxy}/stay state ready")


def shut(pool: Pool) -> None:
    """The service was stopped: it is down, and taken back by its health alone.

    Nothing stays drained: whoever starts it again, systemd or Docker too, has it served.
    """
    _command(pool, f"set server {pool.proxy}/{pool.replica} health down")
    admit(pool)


def back(pool: Pool, seconds: float = 15.0) -> bool:
    """Wait until the proxy's checks let requests come.

    There is nothing to wait for where people took it out, and where there is no proxy.
    """
    return not remaining(lambda: _down(pool), seconds)


def _down(pool: Pool) -> bool:
    try:
        states = haproxy.server_states(haproxy.ask(pool.admin, haproxy.SERVERS))
    except (OSError, ValueError, KeyError):
        return False
    state = states.get((pool.proxy, pool.replica))
    return state is not None and state.status.startswith("DOWN")


def _command(pool: Pool, line: str) -> None:
    with contextlib.suppress(OSError):
        haproxy.ask(pool.admin, line)


def _busy(pool: Pool) -> int:
    try:
        return haproxy.busy(pool.master, pool.proxy, pool.replica)
    except TimeoutError:
        return 1  # it does not say: who is behind it may still be served
    except (OSError, ValueError, KeyError):
        return 0  # no proxy, nobody behind it


def write_sleeping(place: Path) -> None:
    """Have the file as the host's state says; ``state`` lies beside the proxies' directory."""
    sleeping = exclusive.sleeping(place.parent.parent / "state")
    files.write(place, "".join(f"{name} {sleeping[name]}\n" for name in sorted(sleeping)), 0o644)


def tell_sleeping(state: Path) -> None:
    """Have file and worker as the host's state says, in one step for those who ask."""
    path = state.parent / "gateway" / ASLEEP_MAP
    if not path.exists():
        return  # no proxy has it, or not yet
    write_sleeping(path)
    admin = exclusive.groups(state).admin
    with contextlib.suppress(OSError):  # HAProxy reads the file when it starts
        made = _VERSION.search(haproxy.ask(admin, f"prepare map {path}"))
        if made:
            for line in path.read_text().splitlines():
                haproxy.ask(admin, f"add map @{made[1]} {path} {line}")
            haproxy.ask(admin, f"commit map @{made[1]} {path}")

"""The host's own proxy in front of a service: how to leave it and come back without a cut."""

from __future__ import annotations

import contextlib
import time

from sparkwright.host.proxy import runtime_api as haproxy
from sparkwright.host.proxy.pool import Pool
from sparkwright.host.proxy.runtime_api import drain, ready


class Place:
    """A service's place behind it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def leave(self) -> None:
        """Have load balancers in front send nothing new, and wait for the end of what runs."""
        # /health says that the proxy is about to close; it still takes what comes.
        self._command(f"set server stay-{self._pool.proxy}/stay state maint")
        time.sleep(self._pool.notice_seconds)
        self._command(drain(self._pool.proxy, self._pool.replica))
        until = time.monotonic() + self._pool.drain_seconds
        while self._busy() and time.monotonic() < until:
            time.sleep(0.1)

    def open(self) -> None:
        """Take requests again."""
        self._command(
            ready(self._pool.proxy, self._pool.replica),
            f"set server stay-{self._pool.proxy}/stay state ready",
        )

    def shut(self) -> None:
        """The service was stopped: it is down, and taken back by its health alone.

        Nothing stays drained: whoever starts it again, systemd or Docker too, has it served.
        """
        self._command(f"set server {self._pool.proxy}/{self._pool.replica} health down")
        self.open()

    def back(self, seconds: float = 15.0) -> bool:
        """Wait until its checks let requests come.

        There is nothing to wait for where people took it out, and where there is no proxy.
        """
        until = time.monotonic() + seconds
        while self._down():
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def _down(self) -> bool:
        try:
            states = haproxy.server_states(haproxy.ask(self._pool.sockets.admin, haproxy.SERVERS))
        except (OSError, ValueError, KeyError):
            return False
        state = states.get((self._pool.proxy, self._pool.replica))
        return state is not None and state.status.startswith("DOWN")

    def _command(self, *lines: str) -> None:
        for line in lines:
            with contextlib.suppress(OSError):
                haproxy.ask(self._pool.sockets.admin, line)

    def _busy(self) -> int:
        try:
            return haproxy.busy(self._pool.sockets.master, self._pool.proxy, self._pool.replica)
        except TimeoutError:
            return 1  # it does not say: who is behind it may still be served
        except (OSError, ValueError, KeyError):
            return 0  # no proxy, nobody behind it

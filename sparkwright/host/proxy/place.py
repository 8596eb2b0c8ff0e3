"""The host's own proxy in front of a service: how to leave it and come back without a cut."""

from __future__ import annotations

import contextlib
import time

from sparkwright.host.proxy import runtime_api as haproxy
from sparkwright.host.proxy.pool import Pool, down

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Iterable


class Place:
    """A service's place behind it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def leave(self) -> None:
        """Say that nothing new is wanted, and see what runs to its end."""
        self._say(self._pool.leave)
        time.sleep(self._pool.notice_seconds)
        self._say(self._pool.close)
        until = time.monotonic() + self._pool.drain_seconds
        while self._busy() and time.monotonic() < until:
            time.sleep(0.1)

    def open(self) -> None:
        """Take requests again."""
        self._say(self._pool.open)

    def shut(self) -> None:
        """The service was stopped: it is down, and taken back by its health alone.

        Nothing stays drained: whoever starts it again, systemd or Docker too, has it served.
        """
        self._say((down(*self._pool.server), *self._pool.open))

    def back(self, seconds: float = 15.0) -> bool:
        """Wait until its checks let requests come; where people took it out, and where there is no
        proxy, there is nothing to wait for."""
        until = time.monotonic() + seconds
        while self._down():
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def _down(self) -> bool:
        try:
            states = haproxy.server_states(haproxy.ask(self._pool.admin, haproxy.SERVERS))
        except (OSError, ValueError, KeyError):
            return False
        state = states.get(self._pool.server)
        return state is not None and state.status.startswith("DOWN")

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            with contextlib.suppress(OSError):
                haproxy.ask(self._pool.admin, line)

    def _busy(self) -> int:
        try:
            return haproxy.busy(self._pool.master, *self._pool.server)
        except TimeoutError:
            return 1  # it does not say: who is behind it may still be served
        except (OSError, ValueError, KeyError):
            return 0  # no proxy, nobody behind it

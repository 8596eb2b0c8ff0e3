"""How many connections a peer server has: as a whole, and with one address.

Who has not shown a key makes room for who comes later, the oldest first: connections that say
nothing keep nobody out.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock

MOST = 256
MOST_OF_ONE = 64


class Connections:
    """The connections of a server."""

    def __init__(self, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._lock = Lock()
        self._addresses: dict[socket.socket, str] = {}
        self._unknown: dict[socket.socket, None] = {}

    def admit(self, connection: socket.socket, address: str) -> bool:
        """Whether there is room for a connection; an older one may be closed for it."""
        with self._lock:
            of_one = [one for one, other in self._addresses.items() if other == address]
            if len(of_one) >= self._most_of_one and not self._make_room(of_one):
                return False
            if len(self._addresses) >= self._most and not self._make_room(list(self._unknown)):
                return False
            self._addresses[connection] = address
            self._unknown[connection] = None
            return True

    def known(self, connection: socket.socket) -> None:
        """It has shown a key: it stays as long as it likes."""
        with self._lock:
            self._unknown.pop(connection, None)

    def leave(self, connection: socket.socket) -> None:
        """It has ended."""
        with self._lock:
            self._addresses.pop(connection, None)
            self._unknown.pop(connection, None)
            connection.close()

    def _make_room(self, among: list[socket.socket]) -> bool:
        for one in among:  # in the order of their arrival
            if one in self._unknown:
                self._addresses.pop(one, None)
                self._unknown.pop(one)
                with suppress(OSError):
                    # Not TLS's own: another thread may be in the middle of its handshake.
                    socket.socket.shutdown(one, socket.SHUT_RDWR)
                return True
        return False

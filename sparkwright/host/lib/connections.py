"""Connections of a server: few of them, in threads of their own, and none that ends the server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable

from sparkwright.host.lib.annotations import Any

#: Seconds after a connection that could not be taken.
_PAUSE = 0.01


class Connections:
    """The connections of a server: a bounded number as a whole, and with one address.

    Clients without a key make room for later ones, the oldest first: connections that say
    nothing keep nobody out.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._lock = threading.Lock()
        #: In the order of their arrival.
        self._addresses: dict[socket.socket, str] = {}
        self._known: set[socket.socket] = set()

    def admit(self, connection: socket.socket, address: str) -> bool:
        """Whether there is room for a connection; an older one may be closed for it."""
        with self._lock:
            same = [other for other, its in self._addresses.items() if its == address]
            if len(same) >= self._most_of_one and not self._make_room(same):
                return False
            if len(self._addresses) >= self._most and not self._make_room(list(self._addresses)):
                return False
            self._addresses[connection] = address
            return True

    def identified(self, connection: socket.socket) -> None:
        """It has shown a key: it stays as long as it likes."""
        with self._lock:
            self._known.add(connection)

    def leave(self, connection: socket.socket) -> None:
        """It has ended."""
        with self._lock:
            self._addresses.pop(connection, None)
            self._known.discard(connection)
            connection.close()

    def _make_room(self, among: list[socket.socket]) -> bool:
        unknown = next((item for item in among if item not in self._known), None)
        if unknown is not None:
            del self._addresses[unknown]
            with contextlib.suppress(OSError):
                unknown.shutdown(socket.SHUT_RDWR)
        return unknown is not None


class Bounded(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Handles the connections of a socket that listens already.

    Args:
        handler: called with connection, address and this server.
        connections: of this socket, or of several together.
    """

    daemon_threads = True

    def __init__(
        self, listening: socket.socket, handler: Callable[..., Any], connections: Connections
    ) -> None:
        # Not TCPServer's, which makes a socket.
        socketserver.BaseServer.__init__(self, listening.getsockname(), handler)
        self.socket, self._connections = listening, connections
        listening.setblocking(False)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)  # without a descriptor, the next try would fail at once
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for a connection."""
        return self._connections.admit(request, client_address[0])

    def shutdown_request(self, request: Any) -> None:
        """End a connection, or refuse it."""
        self._connections.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that broke off or was too slow: anybody can."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

"""Bounded connections of a server, each in its own thread; no connection ends the server."""

import contextlib
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable

from sparkwright.host.lib.annotations import Any

#: Seconds to wait after a connection that could not be accepted.
_PAUSE = 0.01


class Connections:
    """Connections of a server: their number is bounded in total and by client address.

    The oldest clients without a key make room for later clients, so idle connections block no
    client.
    """

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._lock = threading.Lock()
        #: Connections in the order of their arrival.
        self._addresses: dict[socket.socket, str] = {}
        self._known: set[socket.socket] = set()

    def admit(self, connection: socket.socket, address: str) -> bool:
        """Return whether there is room for a connection; an older connection may be closed for
        it.
        """
        with self._lock:
            same = [other for other, its in self._addresses.items() if its == address]
            if len(same) >= self._most_of_one and not self._make_room(same):
                return False
            if len(self._addresses) >= self._most and not self._make_room(list(self._addresses)):
                return False
            self._addresses[connection] = address
            return True

    def identified(self, connection: socket.socket) -> None:
        """Mark a connection as authenticated: the server never closes it for another connection."""
        with self._lock:
            self._known.add(connection)

    def leave(self, connection: socket.socket) -> None:
        """Forget a connection that has ended."""
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
    """Server for the connections of a socket that already listens.

    Args:
        handler: function called with the connection, the client's address and this server.
        connections: connections of this socket, or of several sockets together.
    """

    daemon_threads = True

    def __init__(
        self, listening: socket.socket, handler: Callable[..., Any], connections: Connections
    ) -> None:
        # Skip TCPServer's constructor, which makes a socket.
        socketserver.BaseServer.__init__(self, listening.getsockname(), handler)
        self.socket, self._connections = listening, connections
        listening.setblocking(False)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept the next connection."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)  # without a free descriptor, the next try would fail at once
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room for a connection."""
        return self._connections.admit(request, client_address[0])

    def shutdown_request(self, request: Any) -> None:
        """Close or refuse a connection."""
        self._connections.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that disconnected or was too slow: anybody could fill the
        log.
        """
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

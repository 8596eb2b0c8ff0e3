"""Serves this host's models and images to peers and to its own Docker, also while being fetched.

systemd holds the port and passes it: no local program can take it. Where there is no systemd (a
bundle on the controller), the server listens itself. It ends when nobody with a key has asked for
long enough. What it answers: peer_conversation.py.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from sparkwright.host.fetch.errors import FAILED, OK, Failed
from sparkwright.host.fetch.peer_conversation import UNKNOWN, Conversation
from sparkwright.host.fetch.peer_files import Keys, Store
from sparkwright.host.fetch.peer_wire import Broken
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import PeerServerRequest, read_peer_server

#: The first descriptor that systemd passes (sd_listen_fds(3)).
_FIRST_PASSED = 3
_BACKLOG = 256
#: Connections at once, and of them with one address.
MOST = 256
MOST_OF_ONE = 64


class Connections:
    """The connections of a server: a bounded number as a whole, and with one address.

    Who has not shown a key makes room for who comes later, the oldest first: connections that say
    nothing keep nobody out.
    """

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


class PeerServer:
    """A server on sockets that listen already."""

    def __init__(self, request: PeerServerRequest, listening: list[socket.socket]) -> None:
        self.store = Store(request.roots)
        self.keys = Keys(request.keys)
        self._connections = Connections()
        self._listening = listening
        self._idle = request.idle
        self._last = time.monotonic()
        self._ended = Event()
        self._tls = _tls(request.certificate) if request.certificate else None

    def used(self, connection: socket.socket) -> None:
        """Somebody with a key asks: the idle time begins anew."""
        self._connections.known(connection)
        self._last = time.monotonic()

    def stopped(self) -> bool:
        """Whether the server ends."""
        return self._ended.is_set()

    def stop(self) -> None:
        """End it, from any thread or signal."""
        self._ended.set()

    def run(self) -> None:
        """Serve until it is stopped, was idle for long enough, or has lost what it served.

        Somebody may empty /opt/sparkwright by hand: the directories that it sees go with it, and
        every request would be refused until it is idle.
        """
        with selectors.DefaultSelector() as selector:
            for one in self._listening:
                one.setblocking(False)
                selector.register(one, selectors.EVENT_READ)
            while (
                not self.stopped()
                and time.monotonic() - self._last <= self._idle
                and self.keys.are_there()
            ):
                for ready, _ in selector.select(0.2):
                    self._accept(ready.fileobj)
        self.stop()

    def _accept(self, listening: object) -> None:
        assert isinstance(listening, socket.socket)
        try:
            connection, address = listening.accept()
        except OSError:
            time.sleep(0.01)  # no descriptor is free, or it has hung up already
            return
        if self._tls and not is_own_docker(address[0]):
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        if not self._connections.admit(connection, address[0]):
            connection.close()
            return
        try:
            Thread(target=self._converse, args=(connection, address[0]), daemon=True).start()
        except RuntimeError:  # no thread is free
            self._connections.leave(connection)

    def _converse(self, connection: socket.socket, address: str) -> None:
        try:
            # Whoever breaks off, is too slow or asks for nonsense only loses its connection.
            with suppress(Broken, OSError):
                if isinstance(connection, ssl.SSLSocket):
                    connection.settimeout(UNKNOWN)
                    connection.do_handshake()
                Conversation(self, connection, own_docker=is_own_docker(address)).run()
        finally:
            self._connections.leave(connection)


def is_own_docker(address: str) -> bool:
    """Whether this host itself asks."""
    return address.startswith("127.") or address == "::1"


def _tls(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def listening(request: PeerServerRequest) -> list[socket.socket]:
    """The sockets that systemd passes, or those of the request's addresses.

    Raises:
        OSError: when an address can't be had.
    """
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        count = int(os.environ.get("LISTEN_FDS", "0"))
        return [socket.socket(fileno=_FIRST_PASSED + n) for n in range(count)]
    found = []
    for address in request.addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        found.append(socket.create_server((address, request.port), family=family, backlog=_BACKLOG))
    return found


def run(request_path: Path, _runtime: Path | None) -> int:
    """Serve until it was idle for long enough, or until a signal."""
    try:
        request = read_peer_server(request_path)
        server = PeerServer(request, listening(request))
    except Failed as error:
        log(str(error))
        return FAILED
    except OSError as error:
        log(f"cannot listen on port {request.port}: {error.strerror}")
        return FAILED
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    server.run()
    return OK

"""A server of a test: each connection in a thread of its own, until it stops listening."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


def accepting(listening: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    """Have connections served from now on, until the socket is closed."""

    def run() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=run, daemon=True).start()

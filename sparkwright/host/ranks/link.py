"""The link between the head of a cluster and each of its followers: lines of JSON over TCP.

Both sides prove that they know the ranks' key, which itself is never sent. A link is heard of every
two seconds, so that a host without power and a cable that is pulled end it as surely as a process.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import threading
import time
from pathlib import Path

from sparkwright.host.fetch.peer_auth import mac
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.documents import pairs

#: Seconds between two beats, and without any until the other side is lost.
BEAT, PATIENCE = 2.0, 15.0
#: Seconds that one who has just connected gets to say who it is.
GREETING = 5.0
#: Bytes of a line.
_MOST = 4096
#: The name of the key in a service's secrets file.
KEY = "SPARKWRIGHT_RANKS"


class Lost(Exception):
    """The other side is gone, silent, or does not speak as a rank does; the text says which."""


class Late(Exception):
    """Nothing was said in time."""


class Link:
    """Connection between two ranks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._lock = threading.Lock()
        self._said = b""

    def send(self, **words: Any) -> None:
        """Say something.

        Raises:
            Lost: nobody hears it.
        """
        try:
            with self._lock:
                self._connection.sendall(json.dumps(words).encode() + b"\n")
        except OSError as error:
            raise Lost(f"the connection is gone: {error}") from None

    def receive(self, seconds: float) -> dict[str, Any]:
        """Receive the next message of the other side.

        Raises:
            Late: nothing within these seconds; it may still come.
            Lost: there is no other side any more.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._said:
            if len(self._said) > _MOST:
                raise Lost("it says more than a rank does")
            try:
                self._connection.settimeout(max(0.01, until - time.monotonic()))
                text = self._connection.recv(_MOST)
            except TimeoutError:
                raise Late from None
            except OSError as error:
                raise Lost(f"the connection is gone: {error}") from None
            finally:
                with contextlib.suppress(OSError):
                    self._connection.settimeout(PATIENCE)
            if not text:
                raise Lost("it closed the connection")
            self._said += text
            if time.monotonic() > until and b"\n" not in self._said:
                raise Late
        line, _, self._said = self._said.partition(b"\n")
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise Lost("it does not speak as a rank does")
        return data

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def key_of(secrets: str) -> str:
    """The ranks' key, of a service's secrets file.

    Raises:
        OSError, KeyError: when there is none.
    """
    return pairs(Path(secrets).read_text(encoding="utf-8"))[KEY]


def check_proof(said: dict[str, Any], proof: str) -> None:
    """Check that the other side knows the ranks' key.

    Raises:
        Lost: it does not.
    """
    if not hmac.compare_digest(str(said.get("mac")).encode(), proof.encode()):
        raise Lost("it does not know the ranks' key")


def follower_proof(key: str, service: str, number: int, nonce: str) -> str:
    """Proof of a follower's identity: over the head's nonce."""
    return mac(key, "follower", service, str(number), nonce)


def head_proof(key: str, service: str, nonce: str, session: str, release: str) -> str:
    """Proof of the head's identity: over the follower's nonce, and the session and release."""
    return mac(key, "head", service, nonce, session, release)

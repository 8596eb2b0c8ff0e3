"""The link between the head of a cluster and each follower: lines of JSON over TCP.

Both sides prove that they have the ranks' key without sending the key. Each side sends a beat every
two seconds, so a power cut or a pulled cable ends the link as surely as the end of a process.
"""

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

#: Seconds between two beats, and seconds of silence after which the other side is lost.
BEAT, PATIENCE = 2.0, 15.0
#: Seconds for a new client to identify itself.
GREETING = 5.0
#: Largest number of bytes of a line.
_MOST = 4096
#: Name of the key in a service's secrets file.
KEY = "SPARKWRIGHT_RANKS"


class Lost(Exception):
    """The other side is gone, is silent, or violates the protocol; the text has the reason."""


class Late(Lost):
    """No message arrived in time; a message may still arrive."""


class Link:
    """Connection between two ranks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._lock = threading.Lock()
        self._buffer = b""
        self._received, self._sent = time.monotonic(), 0.0

    def send(self, **message: Any) -> None:
        """Send a message.

        Raises:
            Lost: the other side is gone.
        """
        try:
            with self._lock:
                self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Lost(f"the connection is gone: {error}") from None

    def receive(self, seconds: float) -> dict[str, Any]:
        """Receive the other side's next message.

        Raises:
            Late: no message arrived within ``seconds``.
            Lost: the other side is gone.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if len(self._buffer) > _MOST:
                raise Lost("its message is too long")
            left = until - time.monotonic()
            try:
                self._connection.settimeout(max(0.01, left))
                text = self._connection.recv(_MOST) if left > 0 or not self._buffer else None
            except TimeoutError:
                text = None
            except OSError as error:
                raise Lost(f"the connection is gone: {error}") from None
            finally:
                with contextlib.suppress(OSError):
                    self._connection.settimeout(PATIENCE)
            if text is None:
                raise Late(f"no message arrived for {seconds:.0f} s")
            if not text:
                raise Lost("it closed the connection")
            self._buffer += text
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise Lost("it does not follow the ranks' protocol")
        self._received = time.monotonic()
        return data

    def keep(self, seconds: float, **message: Any) -> dict[str, Any]:
        """Keep the link alive for some seconds: send the message at each beat, and receive the
        other side's beats. Returns the other side's message; empty without a message.

        Raises:
            Lost: the other side is gone, or was silent for too long.
        """
        if time.monotonic() - self._sent > BEAT:
            self._sent = time.monotonic()
            self.send(**message)
        try:
            return self.receive(seconds)
        except Late:
            if time.monotonic() - self._received > PATIENCE:
                raise Late(f"no message arrived for {PATIENCE:.0f} s") from None
        return {}

    def close(self) -> None:
        """Close the link."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def key_of(secrets: str) -> str:
    """Return the ranks' key from the text of a service's secrets file.

    Raises:
        OSError, KeyError: the text has no key.
    """
    return pairs(Path(secrets).read_text(encoding="utf-8"))[KEY]


def check_proof(message: dict[str, Any], proof: str) -> None:
    """Check that the other side has the ranks' key.

    Raises:
        Lost: the proof is wrong.
    """
    if not hmac.compare_digest(str(message.get("mac")).encode(), proof.encode()):
        raise Lost("it does not have the ranks' key")


def follower_proof(key: str, service: str, number: int, nonce: str) -> str:
    """Return the proof of a follower's identity, made over the head's nonce."""
    return mac(key, "follower", service, str(number), nonce)


def head_proof(key: str, service: str, nonce: str, session: str, release: str) -> str:
    """Return the proof of the head's identity, made over the follower's nonce, the session and the
    release.
    """
    return mac(key, "head", service, nonce, session, release)

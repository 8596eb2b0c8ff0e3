"""One connection between peers: HTTP/1.1 with a bound on every size and a deadline on every wait.

Standard servers and clients limit the time of one read, not of a whole head: who sends a byte now
and then holds them for ever.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass

_HEAD = 16 << 10
_LINE = re.compile(r"([A-Za-z0-9-]{1,64}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
#: Headers that may come once only: two readers could take different ones.
_ONCE = {"authorization", "content-length", "content-range", "host", "range", "transfer-encoding"}
#: Seconds after which a wait looks whether the program ends.
_LOOK = 1.0

#: The first byte of a TLS handshake: Docker tries that first, and waits 10 s for an answer.
_TLS = 0x16
#: Seconds in which the other side of a refused handshake reads the answer.
_LAST = 0.5


class Broken(Exception):
    """The other side hung up, was too slow, or sent what is not HTTP."""


class Handshake(Broken):
    """The other side speaks TLS, and here is none."""


@dataclass(frozen=True)
class Head:
    """First line and headers of a request or an answer; names in lower case."""

    line: str
    headers: dict[str, str]

    def get(self, name: str) -> str:
        """A header's value, empty if it is missing."""
        return self.headers.get(name, "")


class Wire:
    """A connection. ``stopped`` tells whether waiting is over early."""

    def __init__(self, connection: socket.socket, stopped: Callable[[], bool]) -> None:
        self._socket = connection
        self._stopped = stopped
        self._read = bytearray()

    def head(self, seconds: float) -> Head | None:
        """Read a head. Returns None if the other side ends the connection before it.

        Raises:
            Broken: also when it is not whole after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while (end := self._read.find(b"\r\n\r\n")) < 0:
            if len(self._read) > _HEAD:
                raise Broken("a head of more than 16 KiB")
            buffer = bytearray(4096)
            count = self._receive(memoryview(buffer), deadline)
            if not count:
                if self._read:
                    raise Broken("the connection was cut")
                return None
            self._read += buffer[:count]
            if self._read[0] == _TLS:
                raise Handshake("TLS: here is none")
        text = self._read[:end].decode("latin-1")
        del self._read[: end + 4]
        return _parse(text)

    def body(self, count: int, seconds: float) -> memoryview:
        """Read a body of known length, which is the caller's to bound.

        Raises:
            Broken: also when it is not whole after so many seconds.
        """
        deadline = time.monotonic() + seconds
        body = memoryview(bytearray(count))
        at = min(count, len(self._read))
        body[:at] = self._read[:at]
        del self._read[:at]
        while at < count:
            got = self._receive(body[at:], deadline)
            if not got:
                raise Broken("the connection was cut")
            at += got
        return body

    def send(self, head: str, body: bytes = b"", seconds: float = 10.0) -> None:
        """Send a head, whose lines end with a line feed, and a small body."""
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n" + body)
        except OSError as error:
            raise Broken(error.strerror or "it does not read") from error

    def end(self) -> None:
        """End a connection so that what was sent is read: unread bytes here would reset it."""
        self._socket.shutdown(socket.SHUT_WR)
        until = time.monotonic() + _LAST
        while (left := until - time.monotonic()) > 0:
            self._socket.settimeout(left)
            if not self._socket.recv(4096):
                return

    def send_file(self, descriptor: int, start: int, end: int, seconds: float) -> None:
        """Send a range of a file, without a copy of it here but for TLS, within so many seconds."""
        deadline = time.monotonic() + seconds
        with open(descriptor, "rb", closefd=False) as file:
            while start < end:
                self._socket.settimeout(max(0.01, deadline - time.monotonic()))
                if isinstance(self._socket, ssl.SSLSocket):
                    # Its own sendfile() reads 8 KiB at a time.
                    sent = self._socket.send(os.pread(descriptor, min(end - start, 1 << 20), start))
                else:
                    sent = self._socket.sendfile(file, start, min(end - start, 1 << 20))
                if not sent or time.monotonic() > deadline:
                    raise Broken("it does not read")
                start += sent

    def _receive(self, into: memoryview, deadline: float) -> int:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Broken("no whole answer in time")
            if self._stopped():
                raise Broken("stopped")
            self._socket.settimeout(min(left, _LOOK))
            try:
                return self._socket.recv_into(into)
            except TimeoutError:
                continue
            except OSError as error:
                raise Broken(error.strerror or type(error).__name__) from error


def _parse(text: str) -> Head:
    first, *lines = text.split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            raise Broken("not HTTP")
        name = found[1].lower()
        if name in headers and name in _ONCE:
            raise Broken(f"two headers {name}")
        headers.setdefault(name, found[2].strip())
    return Head(first, headers)

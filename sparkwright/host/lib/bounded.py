"""Limits on servers' answers: number of bytes, and time."""

import functools
import http.client
import io
import socket
import time
from collections.abc import Callable

from sparkwright.host.lib.annotations import Any

MIB = 1 << 20
#: Limits of an answer's head: bytes and seconds.
_HEAD_BYTES, _HEAD_SECONDS = 256 << 10, 120.0


class TooMuch(OSError):
    """An answer exceeds the limit of its kind."""

    def __init__(self, most: int) -> None:
        size = f"{most // MIB} MiB" if most >= MIB else f"{most >> 10} KiB"
        super().__init__(f"the answer has more than {size}")


def read(file: Any, most: int) -> Any:
    """Read a file to its end.

    Raises:
        TooMuch: the file has more than ``most`` bytes.
    """
    result = file.read(most + 1)
    if len(result) > most:
        raise TooMuch(most)
    return result


class Guarded(io.RawIOBase):
    """Reader of a socket's bytes with limits of size and time, until ``lift`` is called."""

    def __init__(self, sock: socket.socket, most: int, seconds: float) -> None:
        self._sock = sock
        self._raw: Any = sock.makefile("rb", buffering=0)
        self._step = sock.gettimeout()
        self._lifted = False
        self.allow(most, seconds)

    def allow(self, most: int, seconds: float | None = None) -> None:
        """Allow ``most`` more bytes from now on, within ``seconds`` or the remaining time."""
        self._most = self._left = most
        if seconds is not None:
            self._until = time.monotonic() + seconds

    def lift(self) -> None:
        """Remove both limits; each read keeps its own timeout."""
        self._lifted = True
        self._sock.settimeout(self._step)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._lifted:
            return self._raw.readinto(buffer)  # type: ignore[no-any-return]
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left if self._step is None else min(self._step, left))
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise TooMuch(self._most)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer with a bounded head and body; for a download, only the head is bounded."""

    def __init__(
        self, sock: socket.socket, *args: Any, most: int | None, seconds: float, **kwargs: Any
    ) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self._guard, self._most = Guarded(sock, _HEAD_BYTES, seconds), most
        self.fp = io.BufferedReader(self._guard)

    def begin(self) -> None:
        """Read the head."""
        super().begin()
        if self._most is None and self.status in (200, 206):
            self._guard.lift()
            return
        most = self._most or MIB
        if self.length:  # a reader allocates the whole line; bytes in the buffer are not counted
            self.length = min(self.length, most + MIB)
        self._guard.allow(most)


def answers(most: int, seconds: float) -> Callable[..., http.client.HTTPResponse]:
    """Return the ``response_class`` of a connection whose answers have ``most`` bytes at most and
    end within ``seconds``.
    """
    return functools.partial(_Answer, most=most, seconds=seconds)


#: ``response_class`` of a connection for downloads: only the head is bounded.
downloads = functools.partial(_Answer, most=None, seconds=_HEAD_SECONDS)

"""HTTP/1.1 messages over streams, as HAProxy sends them to a Unix socket."""

import asyncio
import math
from collections.abc import AsyncIterator

#: Largest number of bytes of a head (HAProxy's own limit is smaller), and of one read.
HEAD, PIECE = 64 << 10, 64 << 10
#: Largest number of lines after the last chunk, including the empty line.
_TRAILERS = 128
#: Headers that belong to a connection, not to the message.
_HOP = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"expect")


class Head:
    """First line and headers of a message; header names are in lower case."""

    def __init__(self, text: bytes) -> None:
        self.first, *lines = text.split(b"\r\n")
        pairs = (line.partition(b":") for line in lines if b":" in line)
        self._fields = [(name.strip().lower(), value.strip()) for name, _, value in pairs]

    def values(self, name: bytes) -> list[str]:
        """Return the values of a header, one for each of its lines."""
        return [value.decode("latin-1") for key, value in self._fields if key == name]

    def value(self, name: bytes) -> str:
        """Return a header's first value; empty if the header is missing."""
        return "".join(self.values(name)[:1])

    def rest(self, *without: bytes) -> bytes:
        """Return the lines of all other headers of the message."""
        fields = (item for item in self._fields if item[0] not in (*_HOP, *without))
        return b"".join(b"%b: %b\r\n" % item for item in fields)

    @property
    def chunked(self) -> bool:
        """Return whether the body is chunked."""
        return "chunked" in self.value(b"transfer-encoding").lower()

    @property
    def length(self) -> int | None:
        """Return the number of bytes of the body; None if the head has no length."""
        text = self.value(b"content-length")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Read the next head."""
    return Head((await reader.readuntil(b"\r\n\r\n"))[:-4])


async def content(
    reader: asyncio.StreamReader, head: Head, *, until_closed: bool
) -> AsyncIterator[bytes]:
    """Yield the body of a message in pieces.

    Args:
        until_closed: whether a body of unknown length lasts until the connection ends.

    Raises:
        IncompleteReadError: the body was cut off.
    """
    left = math.inf if until_closed and head.length is None else head.length or 0
    while True:
        if head.chunked:
            left = int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16)
        last = left == 0 or not head.chunked
        while left:
            piece = await reader.read(int(min(left, PIECE)))
            if not piece and left < math.inf:
                raise asyncio.IncompleteReadError(b"", None)
            if not piece:
                return
            left -= len(piece)
            yield piece
        for _ in range(_TRAILERS if last and head.chunked else 0):  # trailers are dropped
            if await reader.readuntil(b"\r\n") == b"\r\n":
                break
        if last:
            return
        await reader.readuntil(b"\r\n")


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body; without data, the last chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)

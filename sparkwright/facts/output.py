"""Read a host's output: bounded in size, and without control sequences for the terminal.

pyinfra reads lines of any length and number into memory, decodes them strictly, and with ``-vv``
prints them unfiltered.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Queue
from typing import Any

from paramiko.channel import ChannelStderrFile
from pyinfra.api.output import echo
from pyinfra.connectors.util import OutputLine

from sparkwright.text.visible import visible

#: Largest number of bytes of one stream of a command: enough for a user's fact that lists a million
#: files.
MOST_BYTES = 64 << 20
#: Memory of a line beyond its bytes: empty lines are bounded, too.
_LINE = 256
_PIECE = 64 << 10


def read(
    name: str,
    stream: Any,
    lines: Queue[OutputLine],
    print_output: bool = False,
    print_func: Callable[[str], str] | None = None,
) -> None:
    """Read the lines of a stream into a queue, and print them on request, like pyinfra's
    ``read_buffer``.

    Output over the limit is not read: the connection's channel is closed, which fails the command,
    and a line of standard error gives the reason.
    """
    left = MOST_BYTES
    for raw in _lines(stream):
        left -= len(raw) + _LINE
        if left < 0:
            more = f"more than {MOST_BYTES >> 20} MiB of output: the rest was not read"
            lines.put(OutputLine("stderr", more))
            with suppress(Exception):  # nothing reads the closed stream
                getattr(stream, "channel", stream).close()
            return
        line = raw.decode(errors="backslashreplace")
        lines.put(OutputLine(name, line))
        if print_output:
            shown = visible(line)
            echo(print_func(shown) if print_func else shown, err=True)


def _lines(stream: Any) -> Iterator[bytes]:
    """A stream's lines without line breaks; a line over the limit is cut."""
    begun: list[bytes] = []
    size = 0
    while piece := _next(stream):
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield b"".join((*begun, line))
            begun, size = [], 0
        if rest:
            begun.append(rest)
            size += len(rest)
        if size > MOST_BYTES:
            break
    if begun:
        yield b"".join(begun)


def _next(stream: Any) -> bytes:
    """Next bytes of a stream; empty at its end."""
    channel = getattr(stream, "channel", None)
    if channel is None:  # the stream belongs to a local process
        read: Callable[[int], bytes] = stream.readline
    else:
        err = isinstance(stream, ChannelStderrFile)
        read = channel.recv_stderr if err else channel.recv
    return read(_PIECE)

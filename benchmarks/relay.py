"""A TCP relay on this machine that delays bytes, like a connection over a long distance.

    with relay.line("10.213.77.11", 22, round_trip=0.02) as port: ...
    python -m benchmarks.relay 10.213.77.11 22 0.02      (by hand; ends with its standard input)

The relay delays each direction by half a round trip, and a new connection by TCP's handshake.
Only memory limits the bytes in flight: the relay adds latency, and does not limit bandwidth. Each
side of the relay is a separate connection, so acknowledgements and slow start are as on this
machine: a real connection of the same latency is somewhat slower, above all for large transfers.
"""

import asyncio
import contextlib
import selectors
import subprocess
import sys
from collections.abc import Iterator

CHUNK = 64 * 1024
#: Largest number of chunks under way in one direction.
UNDER_WAY = 1024


@contextlib.contextmanager
def line(address: str, port: int, round_trip: float) -> Iterator[int]:
    """Relay a port of this machine to an address with this delay, while the block runs.

    The relay is a separate process, so that its work does not wait for the caller's work, and it
    ends with the caller in any case.
    """
    command = [sys.executable, "-m", "benchmarks.relay", address, str(port), str(round_trip)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


async def _serve(address: str, port: int, one_way: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The caller waits for two packets of the handshake; the other end sends after the third.
        third = asyncio.get_running_loop().time() + 3 * one_way
        await asyncio.sleep(2 * one_way)
        with contextlib.closing(writer), contextlib.suppress(OSError):
            there, back = await asyncio.open_connection(address, port, limit=CHUNK)
            with contextlib.closing(back):
                await asyncio.gather(
                    _carry(reader, back, one_way), _carry(there, writer, one_way, not_before=third)
                )

    # asyncio turns Nagle's algorithm off at both ends: only the relay delays packets.
    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    await ended.wait()


async def _carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    one_way: float,
    not_before: float = 0,
) -> None:
    """Deliver each chunk, and finally the end of the stream, after the delay of one direction.

    Args:
        not_before: earliest time at which the sender could send.
    """
    clock = asyncio.get_running_loop().time
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(UNDER_WAY)

    async def take() -> None:
        chunk = b"?"
        while chunk:
            try:
                chunk = await reader.read(CHUNK)
            except OSError:  # the other side reads the end of the stream
                chunk = b""
            await under_way.put((max(clock(), not_before) + one_way, chunk))

    taking = asyncio.create_task(take())
    try:
        while True:
            due, chunk = await under_way.get()
            await asyncio.sleep(due - clock())
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    finally:
        taking.cancel()


def main() -> None:
    """Serve until standard input ends."""
    address, port, round_trip = sys.argv[1:]
    # select() waits for microseconds, epoll() for whole milliseconds.
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())
    ) as runner:
        runner.run(_serve(address, int(port), float(round_trip) / 2))


if __name__ == "__main__":
    main()

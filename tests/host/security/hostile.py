"""Servers whose answers never end, and the memory of their clients."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.host.serving import accepting

ROOT = Path(__file__).resolve().parents[3]
#: Size of an answer that no client may hold: 700 MiB.
FLOOD = 700 << 20
_CHUNK = b"x" * (1 << 20)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def body(connection: socket.socket) -> None:
    """Send an answer of 700 MiB."""
    connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % FLOOD)
    for _ in range(FLOOD // len(_CHUNK)):
        connection.sendall(_CHUNK)


def head(connection: socket.socket, *_more: object) -> None:
    """Send a header without an end, with lines that are short enough for any client."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(FLOOD // 1000):
        connection.sendall(b"X-More: " + b"y" * 990 + b"\r\n")


def line(connection: socket.socket) -> None:
    """Send a header of one line without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-More: ")
    for _ in range(FLOOD // len(_CHUNK)):
        connection.sendall(_CHUNK)


def going_on(connection: socket.socket, *_more: object) -> None:
    """Send headers with status 100 endlessly, without the answer that they announce."""
    for _ in range(FLOOD // 1000):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 40)


def silent(connection: socket.socket) -> None:
    """Send a byte now and then: every step is in time, and the answer never ends."""
    connection.sendall(OK + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


@contextlib.contextmanager
def serving(attack: object, folder: Path | None = None) -> Iterator[int]:
    """A server that runs this attack on every client, on a free port or at a path."""

    def each(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(65536)
            attack(connection)  # type: ignore[operator]

    with socket.socket(socket.AF_UNIX if folder else socket.AF_INET) as server:
        server.bind(str(folder) if folder else ("127.0.0.1", 0))
        server.listen()
        accepting(server, each)
        try:
            yield 0 if folder else server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)


def memory(process: int, peak: bool = True) -> int:
    """Peak of a process's resident bytes, or their present number."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:" if peak else "VmRSS:")[2].split()[0]) << 10


def client(code: str, *arguments: str, path: str = "", timeout: float = 60) -> tuple[str, int]:
    """Output of a client in a separate process, and its peak memory in bytes."""
    measured = (
        "import sys\n"
        f"sys.path[:0] = [{str(ROOT)!r}, *filter(None, [{path!r}])]\n{code}\n"
        # getrusage would include the memory of this process at the fork.
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(int(status['VmHWM'].split()[0]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", measured, *arguments],
        capture_output=True, text=True, timeout=timeout, check=False,
        env={**os.environ, "NO_PROXY": "*"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    *text, peak = done.stdout.splitlines()
    return "\n".join(text), int(peak) << 10

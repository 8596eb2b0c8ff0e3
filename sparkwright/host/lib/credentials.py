"""Pass secrets to a job through systemd over sockets, so that no file ever has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    import socket

#: A directory in memory that belongs to root.
RUN = "/run"


@contextlib.contextmanager
def handed(secrets: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield unit properties that load secrets by name, valid while the unit is being started.

    systemd connects to the socket (systemd.exec(5), LoadCredential=), and keeps the secret in
    memory for this unit alone until the unit ends.
    """
    if not secrets:
        yield ()
        return
    import socket  # with the next import 15 ms: only jobs with secrets pay for them
    import tempfile
    import threading

    with contextlib.ExitStack() as stack:
        # Only root may enter it.
        path = stack.enter_context(tempfile.TemporaryDirectory(prefix="sparkwright-", dir=RUN))
        for name, text in secrets.items():
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(Path(path, name)))
            server.listen()
            answering = threading.Thread(target=_answer, args=(server, text), daemon=True)
            answering.start()
            stack.callback(answering.join)
            # Wake the thread, even if nobody connected.
            stack.callback(server.shutdown, socket.SHUT_RDWR)
        yield tuple(f"LoadCredential={name}:{path}/{name}" for name in secrets)


def _answer(server: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            with server.accept()[0] as connection:
                connection.sendall(text.encode())

"""A run of the engine on this machine, in its own tree like a container, without Docker.

The models are bound at the recipe's mounts; requests go to the engine's socket in a folder of this
machine, and the engine has no network. Without a folder for the socket, the engine shares this
machine's network and listens on 127.0.0.1.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab.real_engine.tree import inside

STOP_SECONDS = 60.0
"""Seconds, equal to `stop_grace_period` of the compose file."""


@contextlib.contextmanager
def running(
    root: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    mounts: Sequence[tuple[Path, str]],
    log: Path,
    writable: Sequence[str] = (),
    sockets: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command of a container; the output goes to `log`. The engine is stopped at the end.

    writable, sockets: folders, as in `inside`.
    """
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **environment}
    command = ["nice", "-n", "10", *inside(root, arguments, mounts, writable, sockets)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM as `docker stop` does, to the engine's process; return its exit code."""
    if process.poll() is None:
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # --kill-child ends every process of the namespace
            process.wait()
    return process.returncode


def _children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []

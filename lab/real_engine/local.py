"""Running the engine on this machine, in its own tree, as a container would: without Docker.

The models are bound where the recipe mounts them; it is asked at the socket in a folder of this
machine, and has no network. Without such a folder it has this machine's, and 127.0.0.1.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab.real_engine.tree import inside

STOP_SECONDS = 60.0
"""As `stop_grace_period` of the compose file."""


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
    """Start a container's words; what it says goes to `log`. It is stopped at the end.

    writable, sockets: as `inside` has them.
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
    """Send SIGTERM as `docker stop` does, to the engine itself; returns its exit code."""
    if process.poll() is None:
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # --kill-child: process 1 of the namespace, and so everything in it
            process.wait()
    return process.returncode


def _children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []

"""Run the hub in a separate process, for tests and measurements: `with running(DIR) as url:`.

The hub is not a thread of the caller: hf_transfer holds Python's lock during a download, and would
wait forever for a server in the same process.
"""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 30.0
STOP_SECONDS = 5.0


@contextmanager
def running(data: Path, *, cdn_host: str | None = None) -> Iterator[str]:
    """Serve `data` on a free port of 127.0.0.1 and yield the address, without a slash.

    `cdn_host` gives the links of large files another host name of this machine (`localhost`), so
    that their origin differs from the hub's, as with the real hub.
    """
    # The server inherits a socket that listens already: no other program can take its port.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "SPARKWRIGHT_LAB_HUB_DATA": str(data)}
        if cdn_host:
            environment["SPARKWRIGHT_LAB_HUB_CDN"] = f"http://{cdn_host}:{port}"
        command = [sys.executable, "-m", "uvicorn", "lab.hub.app:app"]
        command += ["--app-dir", str(Path(__file__).parents[2]), "--fd", str(listener.fileno())]
        # Tests order dropped connections, which the server would log as errors.
        command += ["--log-level", "critical"]
        process = subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()])
    try:
        # With the listener closed here, a server that fails to start refuses the connection.
        with urllib.request.urlopen(f"{url}/health", timeout=START_SECONDS):
            yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

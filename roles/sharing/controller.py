"""The controller as the host that gives: a bundle's models and images, for the time of a run."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock

from roles import remote, site
from sparkwright.config.places import PACKAGE

_LOCK = Lock()
_running: dict[str, subprocess.Popen[bytes]] = {}


def share(bundle: str, port: int, connection: tuple[str, str] | None) -> str:
    """Address at which a host finds the bundle. The first call starts giving.

    Raises:
        HostError: when the host can't reach the controller directly, or the port is taken.
    """
    if connection is None:
        raise remote.HostError(
            "a bundle is taken from the controller directly, which a jump host prevents: run "
            "pyinfra on the jump host"
        )
    with _LOCK:
        if bundle not in _running:
            _running[bundle] = _start(Path(bundle).resolve(), port)
    return f"http://{connection[0]}:{port}"


def _start(bundle: Path, port: int) -> subprocess.Popen[bytes]:
    state = Path(".sparkwright").resolve()
    token = state / "bundle-token"
    token.touch(mode=0o600)
    token.write_text(site.share_token())
    request = state / "bundle-share.json"
    roots = {"models": str(bundle / "models"), "images": str(bundle / "images")}
    document = {"port": port, "token_file": str(token), "roots": roots, "idle": 86400}
    request.write_text(json.dumps(document))
    words = [
        sys.executable,
        "-I",
        "-S",
        str(PACKAGE / "host/fetch/fetch.py"),
        "--task",
        "share",
        str(request),
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    atexit.register(process.terminate)
    time.sleep(0.5)
    if process.poll() is not None:
        said = process.stderr.read().decode().strip() if process.stderr else ""
        raise remote.HostError(f"the bundle can't be given from this machine: {said}")
    return process

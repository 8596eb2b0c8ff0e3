"""The controller as a seed: a peer server for a bundle's models and images, while a run lasts."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from roles import remote, site
from sparkwright.config.places import PACKAGE
from sparkwright.host.contracts.fetch import PeerRoots, PeerServerRequest

_LOCK = Lock()
_running: dict[str, subprocess.Popen[bytes]] = {}


def share(bundle: str, port: int, connection: tuple[str, str] | None) -> str:
    """Address of the bundle for a host. The first call starts the peer server.

    Raises:
        HostError: when the host can't reach the controller directly, or the port is in use.
    """
    if connection is None:
        raise remote.HostError(
            "hosts download a bundle from the controller directly, which is not possible through "
            "a jump host: run pyinfra on the jump host"
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
    roots = PeerRoots(str(bundle / "models"), str(bundle / "images"))
    document = PeerServerRequest(port, str(token), roots, idle=86400)
    request.write_text(json.dumps(asdict(document)))
    words = [
        sys.executable,
        "-I",
        "-S",
        str(PACKAGE / "host/fetch/fetch.py"),
        "--task",
        "peer-server",
        str(request),
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    atexit.register(process.terminate)
    time.sleep(0.5)
    if process.poll() is not None:
        said = process.stderr.read().decode().strip() if process.stderr else ""
        raise remote.HostError(f"the peer server for the bundle does not start: {said}")
    return process

"""The controller as the host that serves: a bundle's models and images, for the time of a run."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock

from sparkwright.config.places import PACKAGE
from sparkwright.config.secrets import Secret
from sparkwright.facts.asking import HostError
from sparkwright.host.contracts.fetch import PeerRoots, PeerServerRequest
from sparkwright.host.fetch.request import document

_LOCK = Lock()
_running: dict[str, subprocess.Popen[bytes]] = {}


def serve(bundle: str, port: int, token: Secret) -> int:
    """The port at which hosts find the bundle. The first call starts serving.

    Raises:
        HostError: when the port is taken.
    """
    with _LOCK:
        if bundle not in _running:
            _running[bundle] = _start(Path(bundle).resolve(), port, token)
    return port


def _start(bundle: Path, port: int, token: Secret) -> subprocess.Popen[bytes]:
    state = Path(".sparkwright").resolve()
    secret = state / "bundle-token"
    secret.touch(mode=0o600)
    secret.write_text(token.value)
    roots = PeerRoots(models=str(bundle / "models"), images=str(bundle / "images"))
    request = PeerServerRequest(port=port, token_file=str(secret), roots=roots, idle=86400)
    place = state / "bundle-share.json"
    place.write_text(document(request))
    program = PACKAGE / "host/fetch/fetch.py"
    words = [sys.executable, "-I", "-S", str(program), "--task", "peer-server", str(place)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    atexit.register(process.terminate)
    time.sleep(0.5)
    if process.poll() is not None:
        output = process.stderr.read().decode().strip() if process.stderr else ""
        raise HostError(f"the bundle can't be served from this machine: {output}")
    return process

"""The controller as a peer that serves a bundle's models and images during a run."""

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Lock

from sparkwright.config.places import PACKAGE
from sparkwright.facts.asking import HostError
from sparkwright.host.fetch.request import PeerServerRequest, document
from sparkwright.plan.lan import at
from sparkwright.plan.peer_keys import CONTROLLER, Peer, RunKeys

#: Largest number of connections that wait to be accepted, as in templates/peers/port.socket.j2.
_BACKLOG = 4096
_LOCK = Lock()
_running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}


def serve(bundle: str, address: str, port: int, keys: RunKeys) -> Peer:
    """Serve the bundle to hosts as a peer. Returns the peer.

    The first call for an address of this machine starts the server.

    Raises:
        HostError: the port is taken.
    """
    with _LOCK:
        process = _running.get((bundle, address))
        if process is None or process.poll() is not None:
            _running[bundle, address] = _start(Path(bundle).resolve(), address, port, keys)
    return Peer(CONTROLLER, f"http://{at(address, port)}")


def _start(bundle: Path, address: str, port: int, keys: RunKeys) -> subprocess.Popen[bytes]:
    # Each process has its own directory, since two runs may serve the same site.
    state = Path(tempfile.mkdtemp(prefix="bundle-", dir=Path(".sparkwright").resolve()))
    atexit.register(shutil.rmtree, state, ignore_errors=True)
    key = state / "keys" / keys.run
    key.parent.mkdir(mode=0o700)
    key.touch(mode=0o600)
    key.write_text(keys.server(CONTROLLER).value)
    models, images = str(bundle / "models"), str(bundle / "images")
    request = PeerServerRequest(str(key.parent), models, images, idle=86400)
    path = state / "request.json"
    path.write_text(document(request))
    program = PACKAGE / "host/fetch/fetch.py"
    arguments = [sys.executable, "-I", "-S", str(program), "--task", "peer-server", str(path)]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listening = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        text = f"the bundle can't be served from this machine: {error.strerror or error}"
        raise HostError(text) from None
    with listening:
        process = subprocess.Popen(arguments, stdin=listening.fileno())
    atexit.register(process.terminate)
    return process

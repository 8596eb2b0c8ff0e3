"""A peer server as a real process on loopback, and the tests' requests to it."""

import hashlib
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.peer_server import PeerServer
from sparkwright.host.fetch.request import PeerKeys, PeerServerRequest
from tests.host.fetch.conftest import HOST, Fetch

RUN = "ab" * 16
SECRET = "the secret of the fleet, which stays on the controller"
SERVER_KEY = peer_auth.server_key(SECRET, RUN, "seed")
PEER = "leech"
KEY = peer_auth.peer_key(SERVER_KEY, PEER)
DOCKER = (RUN, peer_auth.docker_password(SERVER_KEY))


@dataclass
class Seed:
    """A host with a peer server, and another host that fetches from it."""

    fetch: Fetch
    port: int
    process: subprocess.Popen[str]

    @property
    def address(self) -> str:
        """The certificate's path, as in a fetch's request."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection to the server."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def get(self, path: str, **headers: str) -> tuple[int, bytes, Any]:
        """Return the server's answer to a signed request."""
        connection = self.connect()
        try:
            return signed(connection, path, **headers)
        finally:
            connection.close()

    def plain(self, path: str, **headers: str) -> tuple[int, bytes, Any]:
        """Return the server's answer to an unchanged request."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def is_well(self) -> bool:
        """Return whether the server answers a signed request at once."""
        began = time.monotonic()
        return self.get("/files/models/a/b")[0] == 404 and time.monotonic() - began < 2


def challenge(connection: http.client.HTTPConnection) -> str:
    """A challenge for the next request of a connection."""
    connection.request("GET", "/challenge")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")
    return str(answer.headers["Sparkwright-Challenge"])


def header(given: str, path: str, wanted: str = "", key: str = KEY, **others: str) -> str:
    """The Authorization header of a GET."""
    arguments = (given, "GET", path, wanted, peer_auth.EMPTY)
    run, peer = others.get("run", RUN), others.get("peer", PEER)
    return peer_auth.authorization(key, run, peer, others.get("nonce", "cd" * 16), *arguments)


def signed(
    connection: http.client.HTTPConnection, path: str, key: str = KEY, **headers: str
) -> tuple[int, bytes, Any]:
    """A signed request on a connection, and the proved answer."""
    given = challenge(connection)
    wanted = headers.get("Range", "")
    shown = header(given, path, wanted, key)
    connection.request("GET", path, headers={"Authorization": shown, **headers})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 401:
        arguments = (given, "GET", path, wanted, str(answer.status))
        rest = (answer.headers.get("Content-Range", ""), hashlib.sha256(body).hexdigest())
        made = answer.headers["Sparkwright-Answer"]
        assert peer_auth.is_answer(key, made, "cd" * 16, *arguments, *rest)
    return answer.status, body, answer.headers


def _request(root: Path, certificate: str | None = None) -> PeerServerRequest:
    """A server's request for the keys, models and images below a directory, which are made."""
    keys, models, images = (root / name for name in ("keys", "models", "images"))
    for folder in (keys, models, images):
        folder.mkdir(exist_ok=True, parents=True)
    (keys / RUN).write_text(f"{SERVER_KEY}\n")
    return PeerServerRequest(str(keys), str(models), str(images), 60, certificate)


@contextmanager
def serving(root: Path, certificate: str | None = None) -> Iterator[tuple[PeerServer, int]]:
    """Serve a directory in this process; return the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        port = int(listening.getsockname()[1])
        server = PeerServer(_request(root, certificate), [listening])
        thread = Thread(target=server.run)
        thread.start()
        try:
            yield server, port
        finally:
            server.ended.set()
            thread.join()


@contextmanager
def peer_sharing(fetch: Fetch) -> Iterator[Seed]:
    """Serve the fetch's folder."""
    document = _request(fetch.root)
    request = fetch.root / "peer-server.json"
    request.write_text(json.dumps(asdict(document)))
    command = [sys.executable, "-I", "-S", str(HOST / "fetch.py"), "--task", "peer-server"]
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        port = int(listening.getsockname()[1])
        process = subprocess.Popen(
            [*command, str(request)], stdin=listening.fileno(), stderr=subprocess.PIPE, text=True
        )
    seed = Seed(fetch, port, process)
    try:
        yield seed
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def keys_for(root: Path, *addresses: str, key: str = KEY) -> str:
    """A file with a host's keys for its peers."""
    path = root / "peer-keys"
    path.write_text(json.dumps(asdict(PeerKeys(RUN, PEER, dict.fromkeys(addresses, key)))))
    return str(path)


def fetch_from(leech: Fetch, *seeds: str, key: str = KEY, **changes: Any) -> str:
    """Fetch everything from peers, then from the hub. Returns its output."""
    keys = keys_for(leech.root, *seeds, key=key)
    return leech.complete(apart=True, peers=list(seeds), peer_token_file=keys, **changes)

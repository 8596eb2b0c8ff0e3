"""A host on which requests activate services: HAProxy, the program behind it, and a switch that
a test ends.
"""

import json
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.exclusive import on_request, setup, unattended
from sparkwright.host.exclusive.setup import SetupRequest
from sparkwright.host.lib import exclusive, files
from sparkwright.host.lib.exclusive import NOBODY, Group, Groups
from sparkwright.host.lib.records import encode
from sparkwright.host.proxy import place as proxy_place
from tests.host.proxy.backend import Backend, serving
from tests.host.proxy.haproxy import RunningProxy, opened, proxies_of, replica, until
from tests.unit.builders import kept_service

CHAT = "/v1/chat/completions"
GROUPS = Groups(
    {"evening": Group(("coder", "llm", "writer"))},
    on_request=("llm", "writer"), stay_seconds=0, wait_seconds=30,
)  # fmt: skip


@dataclass
class Waking:
    """A host whose services are started by requests.

    Attributes:
        proxy: proxy of the service ``llm``; ``coder`` runs.
        begun: activated services, in order.
        go: event that lets the switch end.
        well: whether activated services start.
        refusal: reason why the switch does not start.
    """

    place: Path
    proxy: RunningProxy
    backend: Backend
    server: on_request.WakeServer
    begun: list[str] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    well: bool = True
    refusal: str = ""

    def run(self, root: Path, service: str, by: str, *, rests: bool = False) -> str:
        """Fake of a switch."""
        assert (root, by) == (self.place, "idle" if rests else "request")
        service = NOBODY if rests else service
        self.begun.append(service)
        assert self.go.wait(60)
        runs = service if self.well else exclusive.running(root / "state")["evening"]
        exclusive.activate(root / "state", {"evening": runs}, by, "")
        proxy_place.tell_sleeping(root / "state")
        return self.refusal

    def say(self, **changes: Any) -> None:
        """Change a deploy's data."""
        declare(self.place, replace(GROUPS, admin=self.proxy.proxies.admin_socket, **changes))

    def direct(self, service: str = "llm", body: bytes = b"{}") -> bytes:
        """Send a request in HAProxy's form, without HAProxy; return the answer."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.place / "wake.sock"))
            head = f"POST {CHAT} HTTP/1.1\r\nX-Sparkwright-Service: {service}\r\n"
            length = f"Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + length.encode() + body)
            return b"".join(iter(lambda: connection.recv(65536), b""))


def declare(folder: Path, expected: Groups) -> None:
    """Write the groups of exclusive services, as a deploy does."""
    text = json.dumps(encode(expected))
    setup.main(SetupRequest(str(folder), {str(folder / "state/exclusive.json"): (text, 0o600)}))


@contextmanager
def waking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waking]:
    """Run the host until the block ends."""
    path = Path(tempfile.mkdtemp(prefix="wake-"))
    path.chmod(0o755)
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path / "wake.sock"))
    (path / "wake.sock").chmod(0o660)
    if os.geteuid() == 0:
        shutil.chown(path / "wake.sock", group="haproxy")
    made.listen()
    server = on_request.WakeServer(made, path)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        with serving("llm") as backend:
            home = path / "services/llm"
            kept = kept_service("r", "llm", path, port=backend.port)
            files.write(home / "releases/r/release.json", kept.record, 0o640)
            files.point(home / "current", "releases/r")
            proxies = proxies_of(path, (replica(backend),))
            (own,) = proxies.proxies
            own = replace(own, exclusive="evening", on_request=True, engine_key=True)
            proxies = replace(
                proxies, proxies=(own,), home=f"{path}/gateway", wake=str(path / "wake.sock")
            )
            declare(path, replace(GROUPS, admin=proxies.admin_socket))
            (path / "gateway").mkdir()
            proxy_place.write_sleeping(path / "gateway/asleep.map")
            with opened(proxies) as proxy:
                result = Waking(path, proxy, backend, server)
                monkeypatch.setattr(unattended, "run", result.run)
                yield result
                result.go.set()
                # A switch that no test waits for still writes into the directory.
                until(lambda: not server.waking._under_way, "the end of the switch")
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(path)

"""A server whose directories were removed under it makes room for another one."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from sparkwright.host.fetch.peer_server import PeerServer
from sparkwright.host.fetch.request import PeerRoots, PeerServerRequest


def test_it_ends_when_its_keys_are_gone(tmp_path: Path) -> None:
    keys = tmp_path / "served"
    keys.mkdir()
    roots = PeerRoots(models=str(tmp_path / "models"), images=str(tmp_path / "images"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = PeerServer(PeerServerRequest(0, str(keys), roots, 900), [listening])
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        keys.rmdir()
        thread.join(10)
        assert server.ended.is_set()

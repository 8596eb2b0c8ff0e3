"""A fake Docker, which answers requests of host programs on its API socket from a table."""

import json
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Path -> Docker's answer; None for an unknown path.
Answers = Callable[[str], Any]


class _Handler(socketserver.StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        result = self.server.answers(path)
        body = json.dumps({"message": "no such thing"} if result is None else result).encode()
        status = b"404 Not Found" if result is None else b"200 OK"
        self.wfile.write(b"HTTP/1.0 %s\r\n\r\n%s" % (status, body))


def serve(folder: Path, monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    """Answer requests on a socket of the test until the test's process ends."""
    path = folder / "docker.sock"
    path.unlink(missing_ok=True)
    server = socketserver.ThreadingUnixStreamServer(str(path), _Handler)
    server.daemon_threads = True
    server.answers = answers  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")


def containers(seen: list[dict[str, Any]], info: dict[str, Any]) -> Answers:
    """Answers of a Docker with these containers, given in the form of ``docker inspect``."""

    def answer(path: str) -> Any:
        if path == "/info":
            return info
        if path.startswith("/containers/json"):
            return [{"Id": item["Id"]} for item in seen] or []
        for entry in seen:
            if path in (f"/containers/{entry['Id']}/json", f"/containers{entry['Name']}/json"):
                return entry
        return None

    return answer

"""A service's metrics for a load generator that can't show a key: on loopback, for a run's time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

from sparkwright.extras.bench.service import Service

_SECONDS = 10.0


@contextmanager
def without_key(service: Service) -> Iterator[str | None]:
    """Where the service's metrics are read without its key; None where it asks for none."""
    url = f"{service.url}/metrics"
    if _get(service, url) == 200:
        yield None
        return
    shown = {"Authorization": f"Bearer {service.key.value}"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer = requests.get(url, headers=shown, timeout=_SECONDS, verify=_ca(service))
                status, body = answer.status_code, answer.content
            except requests.RequestException:
                status, body = 502, b""
            self.send_response(status if self.path == "/metrics" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Read three times a second: nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def _ca(service: Service) -> str | bool:
    return service.ca or True


def _get(service: Service, url: str) -> int | None:
    try:
        return requests.get(url, timeout=_SECONDS, verify=_ca(service)).status_code
    except requests.RequestException:
        return None

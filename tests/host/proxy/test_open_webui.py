"""Open WebUI behind a real HAProxy: pages and websockets pass, and the address stays closed."""

from pathlib import Path

from sparkwright.proxy.haproxy import PAGE, Proxy
from tests.host.proxy.backend import Backend
from tests.host.proxy.haproxy import opened, proxies_of, replica
from tests.host.serving import free_port


def test_pages_and_websockets_pass_without_an_api_key(folder: Path, first: Backend) -> None:
    page = Proxy(PAGE, free_port(), (replica(first),), "127.0.0.1", "/generates")
    with opened(proxies_of(folder, (), proxies=(page,))) as proxy:
        answer = proxy.get("/v1/models", key=None, headers={"X-Sparkwright-Key": "default"})
        assert answer.status == 200
        assert "connection" not in answer.headers
        (seen,) = first.seen
        assert seen.headers["x-forwarded-proto"] == "http"
        assert seen.headers["x-forwarded-for"] == "127.0.0.1"
        assert "x-sparkwright-key" not in seen.headers
        assert proxy.upgrades(key=None)

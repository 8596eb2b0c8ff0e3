"""A host that reaches the hub by an HTTP proxy alone, as its job's environment says."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from sparkwright.config.settings import HostSettings
from sparkwright.plan.uplink import environment
from tests.host.fetch.conftest import Fetch
from tests.host.serving import Handler, listening

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy, and the hosts that it was asked for; ``hub.example`` and its CDN are reached by it
    alone."""
    asked: list[str] = []

    class Proxy(Handler):
        def do_GET(self) -> None:
            to = urlsplit(self.path)
            asked.append(to.hostname or "")
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            at = f"http://127.0.0.1:{to.port}{to.path}?{to.query}".rstrip("?")
            request = urllib.request.Request(at, headers=headers, method=self.command)
            try:
                answer = DIRECT.open(request, timeout=10)
            except urllib.error.HTTPError as error:
                answer = error
            body = answer.read()
            dropped = ("connection", "transfer-encoding", "date", "server")
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in dropped}
            self.reply(answer.status, body, kept)

        do_HEAD = do_GET

    with listening(Proxy) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_everything_is_fetched_through_it(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.hub.redirects = False
    port = urlsplit(fetch.hub.endpoint).port
    with proxy() as (address, asked):
        settings = HostSettings.model_validate({"services": {}, "http_proxy": address})
        for name, value in environment(settings).items():
            monkeypatch.setenv(name, value)
        fetch.complete(apart=True, endpoint=f"http://hub.example:{port}")
    assert set(asked) == {"hub.example"}
    assert len(asked) >= len(fetch.hub.files)


def test_what_is_in_the_lan_is_not(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as (address, asked):
        expected = {"services": {}, "http_proxy": address, "hub_endpoint": fetch.hub.endpoint}
        # The hub's own CDN, at another address of this machine's.
        settings = HostSettings.model_validate({**expected, "no_proxy": ["127.0.0.2"]})
        for name, value in environment(settings).items():
            monkeypatch.setenv(name, value)
        fetch.complete(apart=True)
    assert asked == []

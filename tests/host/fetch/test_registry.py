"""Blobs of a private registry: its token dance, tokens that run out, a CDN behind it."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.host.fetch.conftest import Fetch
from tests.host.serving import Handler, listening

LAYER = bytes(range(251)) * 9000  # about 2.2 MB
MANIFEST = json.dumps({"layers": ["..."]}).encode()
ACCOUNT = "robot:its-password"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Registry:
    """A registry with one private image. ``lives`` is how often a token is good for."""

    lives: int = 10**6
    port: int = 0
    cdn_port: int = 0
    good: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    seen_at_cdn: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(Handler):
    registry: Registry
    cdn: bool

    def do_GET(self) -> None:
        given = self.headers.get("Authorization")
        registry = self.registry
        if self.cdn:
            registry.seen_at_cdn.append(given)
            self._content(LAYER)
        elif self.path.startswith("/token?"):
            wanted = "Basic " + base64.b64encode(ACCOUNT.encode()).decode()
            if given != wanted or "scope=repository" not in self.path:
                self.reply(401)
                return
            with registry.lock:
                registry.tokens += 1
                token = f"token-{registry.tokens}"
                registry.good[f"Bearer {token}"] = registry.lives
            self.reply(200, json.dumps({"token": token}).encode())
        elif not self._spend(given):
            realm = f'Bearer realm="{registry.endpoint}/token",service="here",'
            self.reply(401, b"", {"WWW-Authenticate": realm + 'scope="repository:a/b:pull"'})
        elif "/manifests/" in self.path:
            self._content(MANIFEST)
        else:
            path = f"http://127.0.0.1:{registry.cdn_port}/signed"
            self.reply(307, b"", {"Location": path})

    do_HEAD = do_GET

    def _spend(self, given: str | None) -> bool:
        with self.registry.lock:
            left = self.registry.good.get(given or "", 0)
            if left > 0 and given:
                self.registry.good[given] = left - 1
            return left > 0

    def _content(self, content: bytes) -> None:
        asked = self.headers.get("Range")
        if not asked:
            self.reply(200, content)
            return
        start, end = (int(number) for number in asked.removeprefix("bytes=").split("-"))
        part = content[start : end + 1]
        self.reply(206, part, {"Content-Range": f"bytes {start}-{end}/{len(content)}"})


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    with (
        listening(_Handler, registry=made, cdn=False) as made.port,
        listening(_Handler, registry=made, cdn=True) as made.cdn_port,
    ):
        yield made


def pull(fetch: Fetch, registry: Registry, account: str | None = ACCOUNT) -> tuple[int, str]:
    file = fetch.root / "account"
    file.write_text(account or "")
    blobs = {digest(LAYER): LAYER, digest(MANIFEST): MANIFEST}
    return fetch.run(
        source="registry",
        endpoint=registry.endpoint,
        repo="a/b/c",
        revision=digest(MANIFEST),
        destination=str(fetch.root / "images" / digest(MANIFEST)),
        manifests=[digest(MANIFEST)],
        files=[
            {"path": name, "size": len(content), "sha256": name, "blob_id": None}
            for name, content in blobs.items()
        ],
        token_file=str(file),
        allow_token_over_http=True,
    )


def test_an_account_opens_a_private_image_and_goes_to_its_own_host_alone(
    fetch: Fetch, registry: Registry
) -> None:
    code, output = pull(fetch, registry)
    assert code == 0, output
    path = fetch.root / "images" / digest(MANIFEST)
    assert (path / digest(LAYER)).read_bytes() == LAYER
    assert (path / digest(MANIFEST)).read_bytes() == MANIFEST
    assert registry.seen_at_cdn
    assert set(registry.seen_at_cdn) == {None}


def test_a_token_that_runs_out_midway_is_replaced(fetch: Fetch, registry: Registry) -> None:
    registry.lives = 4
    code, output = pull(fetch, registry)
    assert code == 0, output
    assert registry.tokens > 2


@pytest.mark.parametrize(
    ("account", "remedy"), [(None, "docker login"), ("robot:wrong", "docker login|may not read it")]
)
def test_without_the_right_account_the_remedy_is_reported(
    fetch: Fetch, registry: Registry, account: str | None, remedy: str
) -> None:
    code, output = pull(fetch, registry, account)
    assert code == 1
    assert any(part in output for part in remedy.split("|"))
    assert ACCOUNT not in output
    assert not (fetch.root / "images" / digest(MANIFEST)).exists()

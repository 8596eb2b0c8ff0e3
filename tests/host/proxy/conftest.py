"""Proxies and replicas for one test each."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sparkwright.proxy.haproxy import Proxy
from tests.host.proxy.backend import Backend, serving
from tests.host.proxy.haproxy import HAPROXY, RunningProxy, opened, proxies_of, replica
from tests.host.serving import free_port

Opener = Callable[..., RunningProxy]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests without HAProxy, with a message."""
    if HAPROXY is None:
        reason = "no haproxy on this machine (apt-get install haproxy)"
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@contextmanager
def own_proxy(
    home: Path, backend: Backend, named: Mapping[str, str], bind: str = "127.0.0.1", **settings: Any
) -> Iterator[RunningProxy]:
    """A host's own proxy before its service, with named keys."""
    home.mkdir(exist_ok=True)
    llm = Proxy("llm", free_port(), (replica(backend),), bind, "/generates", engine_key=True)
    with opened(proxies_of(home, (), proxies=(llm,), **settings)) as proxy:
        proxy.write(named=named)
        proxy.reload()
        yield proxy


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory with a name short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="proxy-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def first() -> Iterator[Backend]:
    """A replica."""
    with serving("one") as backend:
        yield backend


@pytest.fixture
def second() -> Iterator[Backend]:
    """Another replica."""
    with serving("two") as backend:
        yield backend


@pytest.fixture
def start(folder: Path) -> Iterator[Opener]:
    """Open a proxy in front of replicas; it is closed after the test."""
    with ExitStack() as stack:

        def open_(*backends: Backend, **settings: Any) -> RunningProxy:
            proxies = proxies_of(folder, tuple(map(replica, backends)), **settings)
            return stack.enter_context(opened(proxies))

        yield open_

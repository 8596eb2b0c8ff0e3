"""A host on which requests activate services."""

from collections.abc import Iterator

import pytest

from tests.host.exclusive.waking import Waking, waking
from tests.host.proxy.haproxy import HAPROXY


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waking]:
    """``llm`` sleeps behind its proxy, and ``coder`` runs."""
    if HAPROXY is None:
        pytest.skip("no haproxy on this machine (apt-get install haproxy)")
    with waking(monkeypatch) as result:
        yield result

"""The looks of `sparkwright top`: one execution each on one connection, and what is fed of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.load import HostLoad, ServiceLoad
from sparkwright.run import load
from sparkwright.run.state import HostRun
from tests.operations.harness import FakeHost
from tests.operations.sites import site, spark

LOAD = HostLoad(5.0, {"qwen36": ServiceLoad(10.0, 1.0, 0.0, 0.5)}, (), 100, 40)


@pytest.fixture
def feed() -> Iterator[tuple[int, Any]]:
    """A pipe, and what was written into it so far."""
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)

    def fed() -> list[Any]:
        return [json.loads(line) for line in os.read(ours, 1 << 16).decode().splitlines()]

    yield theirs, fed
    os.close(ours)
    os.close(theirs)


def _one(answer: Any, **connection: Any) -> tuple[Any, HostRun, FakeHost]:
    host: Any = spark(load=answer)
    vars(host).update({"connected": True, **connection})
    other = spark("spark-2")
    run = site(host, other)
    return host, run.hosts["spark-1"], other


def test_a_look_is_one_execution_without_sudo(feed: tuple[int, Any]) -> None:
    host, one, other = _one(LOAD)
    other.memory.failure = "not reached: timed out"
    assert load.followed(host, one, feed=feed[0], interval=0.01, count=2)
    assert host.programs == ["load", "load"]
    assert all("_sudo" not in asked.arguments for asked in host.asked)
    assert not any("sudo" in asked.text for asked in host.asked)
    request = host.asked[0].request
    (port,) = [service.port for service in one.desired.plan.services]
    assert request["services"] == {"qwen36": ["127.0.0.1", port]}
    assert request["watch"] == "/opt/sparkwright/watch/config.json"
    first, second, *looks = feed[1]()
    assert first == {"host": "spark-1"}
    assert second == {"host": "spark-2", "silent": "not reached: timed out"}
    assert [look["load"]["services"]["qwen36"]["generated"] for look in looks] == [10.0, 10.0]


def test_a_host_that_was_away_is_connected_to_again(feed: tuple[int, Any]) -> None:
    answers = iter([LOAD, OSError("gone"), LOAD])
    done: list[str] = []

    def answer(_: Any) -> Any:
        found = next(answers)
        if isinstance(found, OSError):
            host.connector.client = SimpleNamespace(
                get_transport=lambda: SimpleNamespace(is_active=lambda: False)
            )
            raise found
        return found

    def disconnect() -> None:
        done.append("disconnect")
        host.connected = False

    def connect(show_errors: bool) -> None:
        done.append("connect")
        if done.count("connect") == 1:
            host.memory.failure = "not reached: no route"
            return
        host.connected = True
        host.connector.client = None

    host, one, _ = _one(answer, disconnect=disconnect, connect=connect)
    assert load.followed(host, one, feed=feed[0], interval=0.0, count=4)
    said = [line.get("silent") or "load" for line in feed[1]()[2:]]
    lost = "sparkwright-load: the connection is lost (gone)"
    assert said == ["load", lost, "not reached: no route", "load"]
    assert done[-1] == "connect"
    assert host.memory.failure is None


def test_a_host_whose_last_look_is_silent_has_not_answered(feed: tuple[int, Any]) -> None:
    host, one, _ = _one(OSError("gone"))
    with pytest.raises(HostError, match="gone"):
        load.followed(host, one, feed=feed[0], interval=0.0, count=1)

"""A service for which a real HAProxy counts no requests is stopped; the next request starts it."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkwright.host.exclusive.idle import Idle
from sparkwright.host.lib import exclusive, files, systemd
from sparkwright.host.lib.exclusive import NOBODY, Group
from sparkwright.host.proxy import place
from sparkwright.host.proxy.pool import Pool
from tests.host.exclusive.waking import CHAT, Waking, waking
from tests.host.proxy.haproxy import HAPROXY, until
from tests.unit.builders import kept_service


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waking]:
    """``llm`` runs behind its proxy, and is stopped after a minute without a request."""
    if HAPROXY is None:
        pytest.skip("no haproxy on this machine (apt-get install haproxy)")
    monkeypatch.setattr(systemd, "is_active", lambda _: True)
    with waking(monkeypatch) as result:
        proxies = result.proxy.proxies
        pool = Pool("llm", proxies.admin_socket, proxies.master_socket, 0, 0, replica="llm")
        record = kept_service("r", "llm", result.place, port=result.backend.port)
        path = result.place / "services/llm/releases/r/release.json"
        files.write(path, replace(record, pool=pool).record, 0o640)
        groups = {"evening": Group(("coder", "llm", "writer", NOBODY))}
        result.say(groups=groups, idle={"llm": 60.0})
        _have_run(result, "llm")
        yield result


def _have_run(night: Waking, service: str) -> None:
    exclusive.activate(night.place / "state", {"evening": service}, "ann", "")
    place.tell_sleeping(night.place / "state")


def _idle(night: Waking) -> tuple[Idle, Counter[str], list[str]]:
    handled, rested = Counter[str](), list[str]()
    return Idle(night.place, handled, rested.append), handled, rested


def test_a_request_keeps_a_service_running_and_a_list_of_models_does_not(night: Waking) -> None:
    idle, _, rested = _idle(night)
    idle.look(0)
    assert night.proxy.post(CHAT).status == 200
    idle.look(50)
    assert night.proxy.get("/v1/models").status == 200
    assert night.proxy.post(CHAT, key="sk-wrong-0123456789abcdef").status == 401
    idle.look(109)
    assert rested == []
    idle.look(110)
    assert rested == ["llm"]


def test_a_long_answer_is_not_cut_and_prevents_an_idle_stop(night: Waking) -> None:
    idle, handled, rested = _idle(night)
    asked = night.proxy.send_later(CHAT, {"hold": True})
    assert night.backend.begun.acquire(timeout=60)
    for now in (0, 5, 100, 200):
        idle.look(now)
    night.backend.go.release()
    assert asked.result(60).status == 200
    handled["llm"] = 1  # HAProxy does not count a request that waits for a start
    idle.look(205)
    idle.look(300)
    handled["llm"] = 0
    idle.look(359)
    assert rested == []
    idle.look(360)
    assert rested == ["llm"]


def test_an_idle_timer_ignores_sleeping_and_stopped_services(
    night: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle, _, rested = _idle(night)
    idle.look(0)
    monkeypatch.setattr(systemd, "is_active", lambda _: False)
    idle.look(999)
    monkeypatch.setattr(systemd, "is_active", lambda _: True)
    idle.look(1000)
    _have_run(night, "coder")
    idle.look(2000)
    assert rested == []


def test_a_request_to_a_stopped_service_starts_the_service_and_waits(night: Waking) -> None:
    night.say(stay_seconds=600, groups={"evening": Group(("llm", NOBODY))}, idle={"llm": 60.0})
    resting = threading.Thread(target=night.server.waking.rest, args=("llm",))
    resting.start()
    until(lambda: night.begun == [NOBODY], "the stop")
    _have_run(night, NOBODY)  # run the first step of the switch
    assert night.proxy.get("/v1/models").status == 503
    asked = night.proxy.send_later(CHAT)
    until(lambda: night.server.waking.handled["llm"] == 1, "the request")
    assert (night.begun, night.backend.seen) == ([NOBODY], [])
    night.go.set()
    assert asked.result(60).status == 200
    resting.join()
    assert night.begun == [NOBODY, "llm"]

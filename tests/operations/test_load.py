"""The looks of `sparkwright top`: one execution each on one connection, and what they say."""

from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.load import HostLoad
from sparkwright.run import questions
from sparkwright.run.state import HostRun
from tests.operations.sites import site, spark

LOAD = HostLoad(5.0, {"qwen36": {"generated": 10.0}}, (), 100, 40)


def _single(answer: Any, **connection: Any) -> tuple[Any, HostRun]:
    host: Any = spark(load=answer)
    vars(host).update({"connected": True, **connection})
    run = site(host, spark("spark-2"))
    return host, run.hosts["spark-1"]


def test_a_look_is_one_execution_that_sudo_logs_in_few_words() -> None:
    host, item = _single(LOAD)
    looks: list[Any] = []
    questions.follow_load(host, item, looks.append, interval=0.01, count=2)
    assert host.programs == ["load", "load"]
    assert [asked.arguments["_sudo"] for asked in host.asked] == [True, True]
    request = host.asked[0].request
    assert request["services"] == {"qwen36": ["/run/sparkwright-engines/qwen36/http.sock", 0]}
    assert request["watch"] == "/opt/sparkwright/watch/config.json"
    assert looks == [LOAD, LOAD]


def test_a_host_that_was_away_is_connected_to_again() -> None:
    answers = iter([LOAD, OSError("gone"), LOAD])
    done: list[str] = []

    def answer(_: Any) -> Any:
        result = next(answers)
        if isinstance(result, OSError):
            host.connector.client = SimpleNamespace(
                get_transport=lambda: SimpleNamespace(is_active=lambda: False)
            )
            raise result
        return result

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

    host, item = _single(answer, disconnect=disconnect, connect=connect)
    looks: list[Any] = []
    questions.follow_load(host, item, looks.append, interval=0.0, count=4)
    texts = [str(look) if isinstance(look, HostError) else "load" for look in looks]
    lost = "sparkwright-load: the connection is lost (gone)"
    assert texts == ["load", lost, "not reached: no route", "load"]
    assert done[-1] == "connect"
    assert host.memory.failure is None


def test_a_host_whose_last_look_is_silent_has_not_answered() -> None:
    host, item = _single(OSError("gone"))
    with pytest.raises(HostError, match="gone"):
        questions.follow_load(host, item, lambda _: None, interval=0.0, count=1)

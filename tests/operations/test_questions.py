"""Queries of the command line, with the answers of hosts: disks, models, samples of `sparkwright
top`, and keys (a host gets only their hashes).
"""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.facts.asking import HostError
from sparkwright.host.load import HostLoad
from sparkwright.host.lock import LockAnswer
from sparkwright.proxy.haproxy import key_hash
from sparkwright.run import questions
from sparkwright.run.state import HostRun
from tests.operations.sites import BEHIND, ENGINE, KEY, KEYS, host_run, site, spark
from tests.unit.builders import SPARK


def _single(**answers: Any) -> tuple[Any, HostRun]:
    host: Any = spark(**answers)
    host.connected = True
    return host, site(host, spark("spark-2")).hosts["spark-1"]


LOAD = HostLoad(5.0, {"qwen36": {"generated": 10.0}}, (), 100, 40)


def test_a_load_sample_takes_one_execution_with_a_short_sudo_log() -> None:
    host, item = _single(load=LOAD)
    looks: list[Any] = []
    questions.follow(
        host, item, looks.append, question=questions.current_load, interval=0.01, count=2
    )
    assert host.programs == ["load", "load"]
    assert [asked.arguments["_sudo"] for asked in host.asked] == [True, True]
    request = host.asked[0].request
    assert request["services"] == {"qwen36": ["/run/sparkwright-engines/qwen36/http.sock", 0]}
    assert request["services_root"] == "/opt/sparkwright"
    assert looks == [LOAD, LOAD]


def test_a_host_is_queried_once_per_interval_and_only_while_a_page_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, item = _single()
    now = 0.0
    asked: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def question(*_: Any) -> float:
        asked.append(now)
        sleep(1.5)  # the duration of an answer
        return now

    monkeypatch.setattr(questions, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(questions, "gevent", SimpleNamespace(sleep=sleep))
    questions.follow(
        host, item, lambda _: None, question=question, interval=5.0, count=4,
        wanted=lambda: not (12 <= now < 60),
    )  # fmt: skip
    assert asked == pytest.approx([0, 5, 10, 60], abs=0.6)
    assert [later - before >= 5 for before, later in pairwise(asked)] == [True] * 3


def test_a_host_that_returns_is_reconnected() -> None:
    answers = iter([LOAD, OSError("gone"), LOAD])
    host, item = _single(load=lambda _: answered())
    done: list[str] = []

    def answered() -> Any:
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

    vars(host).update(disconnect=disconnect, connect=connect)
    looks: list[Any] = []
    questions.follow(
        host, item, looks.append, question=questions.current_load, interval=0.0, count=4
    )
    texts = [str(look) if isinstance(look, HostError) else "load" for look in looks]
    lost = "sparkwright-load: the connection is lost (gone)"
    assert texts == ["load", lost, "not reached: no route", "load"]
    assert done[-1] == "connect"
    assert host.memory.failure is None


def test_a_host_without_a_last_sample_counts_as_silent() -> None:
    host, item = _single(load=OSError("gone"))
    with pytest.raises(HostError, match="gone"):
        questions.follow(
            host, item, lambda _: None, question=questions.current_load, interval=0.0, count=1
        )


OPENCLAW = Secret("sk-the-key-of-openclaw-0123456789")


def _keyed(services: Any = BEHIND) -> tuple[Any, HostRun]:
    """A host with a named key."""
    host = spark(lock=LockAnswer(held=True), keys=[])
    item = host_run(host, services)
    return host, replace(item, keys=Keys({**KEYS.clients, "openclaw": (OPENCLAW,)}, ENGINE))


def test_hashes_of_keys_are_sent_outside_of_the_command_line() -> None:
    host, item = _keyed()
    questions.renewed_keys(host, item)
    assert host.programs == ["lock", "keys"]
    request = host.request("keys")
    assert request["place"] == "/opt/sparkwright/gateway/keys.map"
    assert f"{key_hash(OPENCLAW)} openclaw" in request["text"].splitlines()
    assert request["proxy"]["files"] == {}
    asked = host.asked[-1]
    assert asked.hidden
    for key in (KEY, OPENCLAW, ENGINE):
        assert key.value not in f"{asked.text}{asked.arguments}{request}"
    # An observation takes no lock, and sends nothing.
    host, item = _keyed()
    questions.known_keys(host, item)
    assert (host.programs, host.request("keys")["text"]) == (["keys"], None)


def test_keys_do_not_change_during_another_run() -> None:
    host, item = _keyed()
    host.answers["lock"] = HostError("ann@laptop is at work on this host")
    with pytest.raises(HostError, match="at work"):
        questions.renewed_keys(host, item)
    assert "keys" not in host.programs


def test_a_host_without_a_proxy_is_not_queried() -> None:
    host, item = _keyed(SPARK)
    item = replace(item, proxies=None)
    assert questions.renewed_keys(host, item) == ()
    assert host.asked == []

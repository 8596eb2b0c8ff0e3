"""Keys on their way to a host: hashes alone, by standard input, and the engine's for vLLM alone."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.facts.asking import HostError
from sparkwright.host.lock import LockAnswer
from sparkwright.proxy.haproxy import key_hash
from sparkwright.run import questions
from sparkwright.run.state import HostRun
from tests.operations.harness import FakeHost
from tests.operations.sites import BEHIND, ENGINE, KEY, KEYS, host_run, spark
from tests.unit.builders import SPARK

OPENCLAW = Secret("sk-the-key-of-openclaw-0123456789")
PLACE = "/opt/sparkwright/gateway/keys.map"


def run(**services: Any) -> tuple[FakeHost, HostRun]:
    """A host with a named key."""
    host = spark(lock=LockAnswer(held=True), keys=[])
    item = host_run(host, services or BEHIND)
    return host, replace(item, keys=Keys({**KEYS.clients, "openclaw": (OPENCLAW,)}, ENGINE))


def test_a_host_gets_hashes_and_not_in_a_command() -> None:
    host, item = run()
    questions.renewed_keys(host, item)  # type: ignore[arg-type]
    assert host.programs == ["lock", "keys"]
    request = host.request("keys")
    assert request["place"] == PLACE
    assert f"{key_hash(OPENCLAW)} openclaw" in request["text"].splitlines()
    assert request["proxy"]["files"] == {}
    asked = host.asked[-1]
    assert asked.hidden
    for key in (KEY, OPENCLAW, ENGINE):
        assert key.value not in f"{asked.text}{asked.arguments}{request}"


def test_looking_takes_no_lock_and_sends_nothing() -> None:
    host, item = run()
    questions.known_keys(host, item)  # type: ignore[arg-type]
    assert host.programs == ["keys"]
    assert host.request("keys")["text"] is None


def test_keys_do_not_change_under_another_run() -> None:
    host, item = run()
    host.answers["lock"] = HostError("ann@laptop is at work on this host")
    with pytest.raises(HostError, match="at work"):
        questions.renewed_keys(host, item)  # type: ignore[arg-type]
    assert "keys" not in host.programs


def test_a_host_without_a_proxy_is_asked_nothing() -> None:
    host, item = run(**SPARK)
    item = replace(item, proxies=None)
    assert questions.renewed_keys(host, item) == ()  # type: ignore[arg-type]
    assert host.asked == []

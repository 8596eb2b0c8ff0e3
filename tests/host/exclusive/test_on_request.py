"""The first request for a service that sleeps: it waits, and gets the service's own answer."""

import json
import time

import pytest

from sparkwright.host.exclusive import on_request
from tests.host.exclusive.waking import CHAT, Waking
from tests.host.proxy.haproxy import ENGINE, KEY, until, whole


def test_it_starts_the_service_waits_and_gets_its_answer(night: Waking) -> None:
    asked = night.proxy.send_later(CHAT, {"hold": True})
    until(lambda: night.begun == ["llm"], "the switch")
    assert not asked.done()
    assert night.backend.seen == []
    night.go.set()
    until(lambda: night.backend.seen, "the request")
    night.backend.go.release()
    answer = asked.result(60)
    assert (answer.status, answer.data) == (200, {"replica": "llm"})
    (seen,) = night.backend.seen
    assert (seen.method, seen.path, json.loads(seen.body)) == ("POST", CHAT, {"hold": True})
    assert seen.headers["authorization"] == f"Bearer {ENGINE.value}"
    assert "x-sparkwright-service" not in seen.headers
    # From here on it is a service as every other, and nothing is switched.
    assert night.proxy.post(CHAT).status == 200
    assert night.begun == ["llm"]


def test_a_stream_hears_comments_and_then_its_tokens(
    night: Waking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_request, "_COMMENT", 0.1)
    body = {"stream": True}
    answer = night.proxy.send("POST", CHAT, body)  # its head comes while nothing serves yet
    assert answer.status == 200
    assert answer.getheader("content-type") == "text/event-stream; charset=utf-8"
    assert answer.readline() == b": llm is being started\n"
    night.go.set()
    night.backend.go.release()  # {"stream": true} is one chunk
    text = whole(answer).body
    assert b"data: 0 of llm\n\n" in text


def test_several_wait_for_one_switch(night: Waking) -> None:
    asked = [night.proxy.send_later(CHAT) for _ in range(4)]
    until(lambda: night.begun, "the switch")
    night.go.set()
    assert [item.result(60).status for item in asked] == [200] * 4
    assert night.begun == ["llm"]


def test_one_that_does_not_come_up_is_said(night: Waking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_request, "_COMMENT", 0.1)
    night.well = False
    stream = night.proxy.send("POST", CHAT, {"stream": True})
    asked = night.proxy.send_later(CHAT)
    time.sleep(0.3)
    night.go.set()
    answer = asked.result(60)
    assert (answer.status, answer.headers["retry-after"]) == (503, "300")
    assert answer.data["error"]["running"] == "coder"
    text = whole(stream).body.decode()
    assert '"code": 503' in text
    assert text.endswith("data: [DONE]\n\n")


def test_a_request_waits_no_longer_than_it_may(night: Waking) -> None:
    night.say(wait_seconds=0.5)
    answer = night.proxy.post(CHAT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "still being started" in answer.data["error"]["message"]


def test_a_question_is_no_reason_to_wake(night: Waking) -> None:
    """Clients list models all day."""
    assert night.proxy.get("/v1/models").status == 503
    assert night.begun == []


def test_who_leaves_waits_no_more(night: Waking) -> None:
    connection = night.proxy.connect()
    connection.request("POST", CHAT, b"{}", {"Authorization": f"Bearer {KEY}"})
    until(lambda: night.begun, "the switch")
    connection.close()
    time.sleep(1)  # HAProxy notices, and closes, too
    night.go.set()
    until(lambda: night.proxy.post(CHAT).status == 200, "it serves")
    assert len(night.backend.seen) == 1  # nobody generates for the one that left


def test_a_deploy_that_is_at_work_is_said_and_waited_for(night: Waking) -> None:
    night.well = night.free = False
    night.go.set()
    answer = night.proxy.post(CHAT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "somebody is at work" in answer.data["error"]["message"]
    night.well = night.free = True
    assert night.proxy.post(CHAT).status == 200

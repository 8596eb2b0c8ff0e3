"""Causes of failed checks, from scripted answers; and the helpers of the checks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.serving.fake_vllm.eyes import described
from sparkwright.facts import programs
from sparkwright.facts.answers import parse
from sparkwright.host.lib import metrics, model_list
from sparkwright.host.lib.faults import Fault
from sparkwright.host.lib.http import Answer, Server
from sparkwright.host.lib.records import dataclass, encode
from sparkwright.host.smoke import check as short
from sparkwright.host.smoke import deep, load, picture, routes, structured
from sparkwright.host.smoke.client import DeepClient
from sparkwright.host.smoke.structured import _schema, misfits
from tests.engine.captures import CAPTURES, LLAMA_SERVER
from tests.host.lab.fake_server import launched, make_model
from tests.host.smoke.deep_server import WORDS, at, request
from tests.libyaml import safe_load
from tests.tables import Tables

cases = Tables(__file__)

Reply = tuple[int, Any]


class Scripted(Server):
    """A server whose answers are a function of path and body."""

    def __init__(self, answers: Callable[[str, Any], Reply]) -> None:
        super().__init__("127.0.0.1", 1)
        object.__setattr__(self, "answers", answers)

    def ask(
        self, method: str, path: str, body: object = None, *, timeout: float = 30, key: bool = True
    ) -> Answer:
        status, answer = self.answers(path, body)  # type: ignore[attr-defined]
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Answer(status, text.encode())


def scripted(answers: Callable[[str, Any], Reply], **changes: Any) -> DeepClient:
    return DeepClient(replace(request(), **changes), 1, Scripted(answers))


def chat(text: str | None = None, *, finish: str = "stop", **message: Any) -> Reply:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    usage |= message.pop("usage", {})
    choice = {"finish_reason": finish, "message": {"content": text, **message}}
    return 200, {"choices": [choice], "usage": usage}


def fault(check: Callable[[DeepClient], str], client: DeepClient) -> tuple[str, str]:
    with pytest.raises(Fault) as result:
        check(client)
    return result.value.cause, str(result.value)


def always(answer: Reply) -> Callable[[str, Any], Reply]:
    return lambda _path, _body: answer


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"id": "call-1", "type": "function", "function": function}


def reply(answer: Any) -> Reply:
    """A reply of the table: status and body, or the parts of a chat's answer."""
    if isinstance(answer, list):
        return answer[0], answer[1]
    calls = [call(arguments) for arguments in answer.get("tool_calls", ())]
    return chat(**(answer | ({"tool_calls": calls} if calls else {})))


CHECKS: dict[str, Callable[[DeepClient], str]] = {
    "chat": routes.chat,
    "image": picture.image,
    "thinking-off": routes.switched_off,
    "tools": structured.tools,
    "json-schema": structured.json_schema,
    "needle": partial(load.needle, tokens=2048),
    "limit": load.limit,
}
CASES = safe_load(Path(__file__).with_name("causes.yaml").read_text())


@pytest.mark.parametrize(("check", "answers", "cause", "message"), CASES)
def test_each_answer_has_its_own_cause(
    check: str, answers: list[Any], cause: str, message: str
) -> None:
    def answered(path: str, body: Any) -> Reply:
        if path == "/tokenize":
            return 200, {"tokens": body["prompt"].split()}
        later = body["messages"][-1]["role"] == "tool"
        return reply(answers[-1 if later else 0])

    text = fault(CHECKS[check], scripted(answered))
    assert text[0] == cause
    assert message in text[1]


@cases("text", "noise")
def test_noise_fails_the_check_and_a_cut_character_passes(text: str, noise: bool) -> None:
    client = scripted(always(chat(text, finish="length")))
    if not noise:
        assert short.generate(client) == text
        return
    for check in (short.generate, routes.chat):
        cause, message = fault(check, client)
        assert cause == "noise"
        assert message.startswith("the answer is noise, as from weights that do not fit: ")
        assert not set(message) & set("\x00\x06\x1d\x1e\x9b")


class Streaming(Scripted):
    """A stream of these events, with seconds before the first event and between events."""

    def __init__(self, *events: dict[str, Any] | str, first: float, pause: float) -> None:
        super().__init__(always((200, "")))
        timed = [(first + number * pause, event) for number, event in enumerate(events)]
        object.__setattr__(self, "scripted", timed)

    def events(self, path: str, body: object, *, timeout: float) -> Iterator[tuple[float, str]]:
        for seconds, event in self.scripted:  # type: ignore[attr-defined]
            yield seconds, event if isinstance(event, str) else json.dumps(event)


def streaming(*events: dict[str, Any] | str, first: float = 0.0, pause: float = 0.1) -> DeepClient:
    return DeepClient(request(), 1, Streaming(*events, first=first, pause=pause))


def delta(**parts: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": parts}]}


USAGE = {"choices": [], "usage": {"completion_tokens": 3}}


def test_streams_of_content_and_of_reasoning_pass() -> None:
    for kind in ("content", "reasoning", "reasoning_content"):
        texts = [delta(role="assistant", content=""), *(delta(**{kind: "a"}) for _ in range(3))]
        text = routes.stream(streaming(*texts, USAGE, "[DONE]"))
        assert text == "3 tokens in 3 events over 0.20 s, first at 0.10 s"


@pytest.mark.parametrize(
    ("events", "cause", "message"),
    [
        ([delta(content="a")] * 3, "cut", "ends after 3 events without [DONE]"),
        ([delta(role="assistant", content=""), USAGE, "[DONE]"], "empty", "has no text"),
        ([delta(content="a b c"), USAGE, "[DONE]"], "lump", "3 tokens arrived at once, in 1"),
        ([*[delta(content="!")] * 8, USAGE, "[DONE]"], "marks", "nothing but '!'"),
        ([*[delta(content="a")] * 3, "[DONE]"], "usage", "ends without usage"),
    ],
)
def test_a_bad_stream_has_its_cause(events: list[Any], cause: str, message: str) -> None:
    text = fault(routes.stream, streaming(*events))
    assert text[0] == cause
    assert message in text[1]


def test_a_fast_engine_is_not_reported_as_a_buffered_stream() -> None:
    """A small model writes 3,000 tokens a second; withheld tokens arrive late and all at once."""
    usage = {"choices": [], "usage": {"completion_tokens": 96}}
    events: list[Any] = [*[delta(content="a b c")] * 3, usage, "[DONE]"]
    fast, late = (streaming(*events, first=first, pause=0.01) for first in (0.01, 2.0))
    assert routes.stream(fast).startswith("96 tokens in 3 events over 0.02 s")
    assert fault(routes.stream, late)[0] == "lump"


def test_an_alias_without_an_answer_is_reported() -> None:
    def answers(path: str, body: Any) -> Reply:
        if path == "/v1/models":
            return 200, {"data": [{"id": "tiny"}, {"id": "tiny2"}]}
        return chat("", usage={"completion_tokens": int(body["model"] == "tiny")})

    cause, arguments = fault(routes.names, scripted(answers))
    assert cause == "mute"
    assert "tiny2 is listed, but its answer has no token" in arguments


def test_a_server_without_a_list_of_routes_gets_the_default_routes() -> None:
    asked: list[str] = []

    def answers(path: str, _: Any) -> Reply:
        asked.append(path)
        return (404, "") if path == "/openapi.json" else (401, "")

    assert routes.key(scripted(answers)) == "5 protected routes answer 401 without the key"
    assert "/v1/chat/completions" in asked


@pytest.mark.parametrize(
    ("small", "answer", "cause"),
    [
        (chat(None, finish="length", reasoning="hm"), chat("391"), "thoughtless"),
        (chat(None, finish="length"), chat("400", reasoning="hm"), "wrong"),
        (chat(None, reasoning="hm"), chat("391", reasoning="hm"), "unsaid"),
        (chat(None, finish="length"), chat("<think>hm</think>391"), "leaks"),
    ],
)
def test_a_bad_thinking_switch_has_its_cause(small: Reply, answer: Reply, cause: str) -> None:
    client = scripted(lambda _, body: small if body["max_tokens"] < 100 else answer)
    assert fault(routes.switched_on, client)[0] == cause


def test_more_reasoning_than_on_the_card_passes_with_a_note() -> None:
    lost = chat(None, finish="length", reasoning_content="hm")

    def answers(_: str, body: Any) -> Reply:
        return lost if body["max_tokens"] < 4000 else chat("391", reasoning_content="hm")

    text = routes.switched_on(scripted(answers))
    assert "content: null at 2048 tokens, a budget too small for the reasoning" in text
    assert "within 8192" in text


def long(answer: Reply) -> Callable[[str, Any], Reply]:
    def answers(path: str, body: Any) -> Reply:
        return (200, {"tokens": body["prompt"].split()}) if path == "/tokenize" else answer

    return answers


def test_an_unknown_tokenizer_counts_a_token_for_each_word() -> None:
    def answers(path: str, body: Any) -> Reply:
        if path == "/tokenize":
            return 404, ""
        parts = body["messages"][0]["content"].split()
        return 400, f"This model's maximum context length is 24576, not {len(parts)}"

    assert "maximum context length" in load.limit(scripted(answers))


def test_cache_blocks_larger_than_the_repeated_prefix_are_a_cause() -> None:
    metrics = 'vllm:cache_config_info{block_size="2096",enable_prefix_caching="True"} 1.0\n'

    def answers(path: str, body: Any) -> Reply:
        return (200, metrics) if path == "/metrics" else long(chat("yes"))(path, body)

    cause, arguments = fault(load.prefix_cache, scripted(answers, context=65536))
    assert cause == "unkept"
    assert "(blocks of 2096 tokens)" in arguments


def test_an_engine_that_dies_under_load_is_reported() -> None:
    def answers(path: str, _: Any) -> Reply:
        return {"/metrics": (200, ""), "/health": (503, "")}.get(path, (500, "dead"))

    cause, arguments = fault(load.concurrency, scripted(answers))
    assert cause == "died"
    assert "after 8 requests at once, /health: HTTP 503; one answer: /v1/chat" in arguments


def test_answers_of_another_request_are_reported() -> None:
    """A drafter's block tables that are one row off give every client its neighbour's text."""

    def answers(path: str, body: Any) -> Reply:
        if path in ("/metrics", "/health"):
            return 200, ""
        asked = body["messages"][0]["content"].partition(": ")[2]
        return chat(asked.replace("-003", "-004"))

    cause, arguments = fault(load.concurrency, scripted(answers))
    assert cause == "dropped"
    assert "1 of 8 answers are not complete; first fault: the answer to sparrow-003 is" in arguments


@pytest.mark.parametrize("word", picture.WORDS)
def test_the_fake_engine_recognizes_the_drawn_shapes(word: str) -> None:
    """Program and fake have separate tables of letters and separate code for PNG."""
    for left, right in (("circle", "square"), ("triangle", "circle"), ("square", "triangle")):
        drawn = picture.Picture(("red", left), ("blue", right), word)
        text = described(drawn.data_url())
        assert text == f"I see a red {left} and a blue {right}, and the word {word}."


def test_pictures_differ_between_requests() -> None:
    drawn = {picture.drawn() for _ in range(40)}
    assert len(drawn) > 10
    assert all(item.left[0] != item.right[0] and item.left[1] != item.right[1] for item in drawn)


SCHEMA = _schema(
    name={"type": "string"},
    size={"type": "integer", "minimum": 1},
    kind={"type": "string", "enum": ["a", "b"]},
)


@cases("value", "mistake")
def test_the_validator_names_values_that_do_not_fit(value: Any, mistake: list[str]) -> None:
    assert misfits(value, SCHEMA) == mistake


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_the_validator_accepts_any_json(value: Any) -> None:
    assert isinstance(misfits(value, SCHEMA), list)


@dataclass(frozen=True)
class Page(Server):
    """A server whose every answer is this text."""

    page: str | None = None

    def ask(self, method: str, path: str, body: object = None, **_: Any) -> Answer:
        return Answer(200, (self.page or "").encode())


def test_counters_are_summed_over_engines_and_the_cache_is_reported() -> None:
    page = (
        "# HELP vllm:prefix_cache_hits_total hits\n"
        'vllm:prefix_cache_hits_total{engine="0"} 16.0\n'
        'vllm:prefix_cache_hits_total{engine="1"} 1.5e+01\n'
        'vllm:cache_config_info{block_size="528",enable_prefix_caching="True"} 1.0\n'
    )
    result, nothing = (
        DeepClient(request(), 1, Page("127.0.0.1", 1, page=text)).metrics() for text in (page, "")
    )
    assert result.since(nothing, metrics.PREFIX_HITS) == 31
    assert result.since(result, metrics.DRAFTS) == 0
    assert (result.block, nothing.block) == (528, 16)
    assert result.texts[metrics.PREFIX_CACHING] == "True"


def test_the_program_runs_from_standard_input(tmp_path: Path) -> None:
    """A bare Python (-I, -S) reads the program from standard input, as root's Python on a host."""
    skip = dict.fromkeys(("long-16k", "context-limit", "concurrency"), "not now")
    model = make_model(tmp_path / "model")
    with launched(model, *WORDS) as server:
        asked = at(server.port, tmp_path, skip=skip, boot_seconds=2)
        ran = subprocess.run(
            ["python3", "-IS", "-c", programs.BY_STANDARD_INPUT, "label"],
            input=programs.payload(deep, encode((asked,))),
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
    answer = parse("l", ran.stdout.split("\n"), dict[str, Any])["qwen36"]
    assert {item["verdict"] for item in answer["checks"]} == {"passed", "skipped"}, answer
    assert server.key not in ran.stdout


VLLM = json.loads((CAPTURES / "v1_models.json").read_text())
LLAMA = json.loads((LLAMA_SERVER / "answers.json").read_text())["v1_models"]["body"]


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (VLLM, ["lab-tiny", "lab-tiny-fast", "lab-tiny-deep"]),
        (LLAMA, ["lab-tiny", "lab-tiny-fast"]),
    ],
)
def test_names_and_context_are_read_from_the_server(answer: Any, names: list[str]) -> None:
    assert model_list.names(answer) == names
    assert model_list.context(answer["data"][0]) == 2048
    assert model_list.context({"id": "silent"}) is None

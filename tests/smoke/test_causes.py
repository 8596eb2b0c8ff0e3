"""The finer causes, from answers that no stand-in gives: what is said of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sparkwright.host.smoke import answering, lengths, load, seeing, shaping, thinking
from sparkwright.host.smoke.talk import Fault, Talk
from tests.smoke.deep import request

Answer = tuple[int, Any]


class Scripted(Talk):
    """A conversation whose other side is a function of method, path and body."""

    def __init__(self, answers: Callable[[str, Any], Answer], **changes: Any) -> None:
        self.request = {**request(), **changes}
        self.seconds = 1
        self._answers = answers
        self.service = self  # type: ignore[assignment]

    def left(self) -> float:
        return 1

    def call(
        self, method: str, path: str, body: Any = None, *, key: bool = True, timeout: float = 0
    ) -> tuple[int, bytes]:
        status, answer = self._answers(path, body)
        return status, answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()


def chat(text: str | None = None, *, finish: str = "stop", **message: Any) -> Answer:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    usage |= message.pop("usage", {})
    choice = {"finish_reason": finish, "message": {"content": text, **message}}
    return 200, {"choices": [choice], "usage": usage}


def fault(check: Callable[[Talk], str], talk: Talk) -> tuple[str, str]:
    with pytest.raises(Fault) as found:
        check(talk)
    return found.value.cause, str(found.value)


def always(answer: Answer) -> Callable[[str, Any], Answer]:
    return lambda _path, _body: answer


@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (chat("about 40"), "wrong", "17 + 25 is answered with 'about 40'"),
        (chat("42", usage={"total_tokens": 16}), "miscount", "usage: 10 + 5 is not 16"),
        ((404, {"error": {"message": "no such model"}}), "refused", "HTTP 404: no such model"),
        ((503, "upstream"), "broken", "/v1/chat/completions answers HTTP 503: upstream"),
    ],
)
def test_chat(answer: Answer, cause: str, words: str) -> None:
    said = fault(answering.chat, Scripted(always(answer)))
    assert said[0] == cause
    assert words in said[1]


class Streaming(Scripted):
    """A stream of these events, a tenth of a second apart."""

    def __init__(self, *events: dict[str, Any] | str) -> None:
        super().__init__(always((200, "")))
        self._events = events

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[float, str]]:
        for number, event in enumerate(self._events):
            yield number / 10, event if isinstance(event, str) else json.dumps(event)


def delta(**parts: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": parts}]}


USAGE = {"choices": [], "usage": {"completion_tokens": 3}}


def test_a_stream_of_content_or_of_thoughts_is_a_stream() -> None:
    for kind in ("content", "reasoning", "reasoning_content"):
        texts = [delta(role="assistant", content=""), *(delta(**{kind: "a"}) for _ in range(3))]
        said = answering.stream(Streaming(*texts, USAGE, "[DONE]"))
        assert said == "3 tokens in 3 events over 0.20 s, first at 0.10 s"


@pytest.mark.parametrize(
    ("events", "cause", "words"),
    [
        ([delta(content="a")] * 3, "cut", "ends after 3 events without [DONE]"),
        ([delta(role="assistant", content=""), USAGE, "[DONE]"], "empty", "has no text"),
        ([delta(content="a b c"), USAGE, "[DONE]"], "lump", "3 tokens came all at once, in 1"),
        ([*[delta(content="!")] * 8, USAGE, "[DONE]"], "marks", "nothing but '!'"),
        ([*[delta(content="a")] * 3, "[DONE]"], "usage", "without its usage"),
    ],
)
def test_stream(events: list[Any], cause: str, words: str) -> None:
    said = fault(answering.stream, Streaming(*events))
    assert said[0] == cause
    assert words in said[1]


def test_a_picture_that_is_not_taken() -> None:
    refusal = (400, {"error": {"message": "At most 0 image(s) may be provided in one prompt."}})
    cause, words = fault(seeing.image, Scripted(always(refusal)))
    assert cause == "refused"
    assert "HTTP 400: At most 0 image(s)" in words


def test_a_name_that_says_nothing() -> None:
    def answers(path: str, body: Any) -> Answer:
        if path == "/v1/models":
            return 200, {"data": [{"id": "tiny"}, {"id": "tiny2"}]}
        return chat("", usage={"completion_tokens": int(body["model"] == "tiny")})

    cause, words = fault(answering.names, Scripted(answers))
    assert cause == "mute"
    assert "tiny2 is listed, and answers without a token" in words


def test_a_server_without_a_list_of_routes_is_asked_for_those_it_must_have() -> None:
    asked: list[str] = []

    def answers(path: str, _: Any) -> Answer:
        asked.append(path)
        return (404, "") if path == "/openapi.json" else (401, "")

    assert answering.key(Scripted(answers)) == "5 guarded routes answer 401 without it"
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
def test_thinking(small: Answer, answer: Answer, cause: str) -> None:
    talk = Scripted(lambda _, body: small if body["max_tokens"] < 100 else answer)
    assert fault(thinking.with_thoughts, talk)[0] == cause


def test_more_thoughts_than_the_card_says_are_told_not_failed() -> None:
    lost = chat(None, finish="length", reasoning_content="hm")

    def answers(_: str, body: Any) -> Answer:
        return lost if body["max_tokens"] < 4000 else chat("391", reasoning_content="hm")

    said = thinking.with_thoughts(Scripted(answers))
    assert "content: null at 2048 tokens, a budget too small for its thoughts" in said
    assert "within 8192" in said


def test_thoughts_that_stay_wrong_without_them() -> None:
    assert fault(thinking.without, Scripted(always(chat("41"))))[0] == "wrong"


def call(arguments: str, name: str = "get_weather") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": "call-1", "type": "function", "function": function}


RIGHT = '{"city": "Oslo", "unit": "celsius"}'


@pytest.mark.parametrize(
    ("first", "second", "cause", "words"),
    [
        (chat("It is cold."), None, "uncalled", "no tool is called; the answer is 'It is cold.'"),
        (chat(tool_calls=[call("{city")]), None, "garbled", "arguments that are no JSON: {city"),
        (chat(tool_calls=[call('{"city": "Oslo"}')]), None, "garbled", "$.unit is missing"),
        (chat(tool_calls=[call(RIGHT)]), None, "garbled", "finish_reason stop, not tool_calls"),
        (
            chat(tool_calls=[call(RIGHT)], finish="tool_calls"),
            chat(tool_calls=[call(RIGHT)], finish="tool_calls"),
            "again",
            "called again instead of its result being used",
        ),
        (
            chat(tool_calls=[call(RIGHT)], finish="tool_calls"),
            chat("It is 4 degrees."),
            "unused",
            "the tool said 23 degrees, the answer is 'It is 4 degrees.'",
        ),
    ],
)
def test_tools(first: Answer, second: Answer | None, cause: str, words: str) -> None:
    def answers(_: str, body: Any) -> Answer:
        later = body["messages"][-1]["role"] == "tool"
        return second if later and second else first

    said = fault(shaping.tools, Scripted(answers))
    assert said[0] == cause
    assert words in said[1]


@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (chat('{"city": "Oslo"}'), "misfit", "$.country is missing"),
        (chat('{"city": "Os', finish="length"), "endless", "256 tokens end within the JSON"),
    ],
)
def test_json_schema(answer: Answer, cause: str, words: str) -> None:
    said = fault(shaping.json_schema, Scripted(always(answer)))
    assert said[0] == cause
    assert words in said[1]


def long(answer: Answer) -> Callable[[str, Any], Answer]:
    def answers(path: str, body: Any) -> Answer:
        return (200, {"count": len(body["prompt"].split())}) if path == "/tokenize" else answer

    return answers


@pytest.mark.parametrize(
    ("check", "answer", "cause", "words"),
    [
        (lengths.after_2k, chat("lamp"), "short", "the probe has only 10 tokens"),
        (
            lengths.limit,
            chat("yes", usage={"prompt_tokens": 27000}),
            "longer",
            "27000 tokens are answered, where 24576 are the context",
        ),
        (lengths.limit, (400, "Bad Request"), "unclear", "HTTP 400: Bad Request"),
        (lengths.limit, (413, "too long"), "unclear", "HTTP 413: too long"),
    ],
)
def test_lengths(check: Callable[[Talk], str], answer: Answer, cause: str, words: str) -> None:
    said = fault(check, Scripted(long(answer)))
    assert said[0] == cause
    assert words in said[1]


def test_a_tokenizer_that_is_not_told_is_taken_to_make_a_token_of_a_word() -> None:
    def answers(path: str, body: Any) -> Answer:
        if path == "/tokenize":
            return 404, ""
        words = body["messages"][0]["content"].split()
        return 400, f"This model's maximum context length is 24576, not {len(words)}"

    assert "maximum context length" in lengths.limit(Scripted(answers))


def test_blocks_too_large_for_what_repeats_are_a_cause_of_their_own() -> None:
    metrics = 'vllm:cache_config_info{block_size="2096",enable_prefix_caching="True"} 1.0\n'

    def answers(path: str, body: Any) -> Answer:
        return (200, metrics) if path == "/metrics" else long(chat("yes"))(path, body)

    cause, words = fault(load.prefix_cache, Scripted(answers, context=65536))
    assert cause == "unkept"
    assert "(blocks of 2096 tokens)" in words


def test_an_engine_that_dies_of_its_load() -> None:
    def answers(path: str, _: Any) -> Answer:
        return {"/metrics": (200, ""), "/health": (503, "")}.get(path, (500, "dead"))

    cause, words = fault(load.concurrency, Scripted(answers))
    assert cause == "died"
    assert "after 8 requests at once, /health says HTTP 503; one answer: /v1/chat" in words


def test_answers_that_are_somebody_elses() -> None:
    """A drafter's block tables that are one row off give everyone the neighbour's text."""

    def answers(path: str, body: Any) -> Answer:
        if path in ("/metrics", "/health"):
            return 200, ""
        asked = body["messages"][0]["content"].partition(": ")[2]
        return chat(asked.replace("-003", "-004"))

    cause, words = fault(load.concurrency, Scripted(answers))
    assert cause == "dropped"
    assert "1 of 8 answers at once are not whole; one: sparrow-003 is answered with" in words

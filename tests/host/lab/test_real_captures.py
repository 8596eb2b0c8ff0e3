"""The serving fake against what the real engine printed (tests/real_engine keeps it true)."""

import json
from collections.abc import Iterator

import pytest

from sparkwright.engines import engine
from tests.engine.captures import CAPTURES, series, shape
from tests.host.lab.fake_server import Server, launched, make_model

# Known differences: the fake calls no tool parser, and does not count thoughts by themselves.
_NOT_IN_FAKE = ("vllm:tool_call_parser_invocations",)
_NOT_COUNTED = ("usage", "completion_tokens_details")


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fake for 0.32.0, which drafts as the lab's recipe does."""
    model = make_model(tmp_path_factory.mktemp("captures") / "model")
    speculation = {"method": "ngram", "num_speculative_tokens": 11}
    arguments = ["--reasoning-parser", "qwen3", "--speculative-config", json.dumps(speculation)]
    with launched(model, *arguments, FAKE_VLLM_VERSION="0.32.0") as started:
        yield started


def captured(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


def test_answers_have_the_shape_of_the_real_ones(fake: Server) -> None:
    text = fake.chat("Hello", max_tokens=5, chat_template_kwargs={"enable_thinking": False})
    real = json.loads(captured("chat.json"))
    for answer in (text, real):
        group, key = _NOT_COUNTED
        answer[group][key] = None
    assert shape(text) == shape(real)


def test_metrics_have_the_real_names_and_labels(fake: Server) -> None:
    fake.chat("Hello", max_tokens=5)
    real = set(captured("metric_series.txt").splitlines())
    names = {name for name in real if name.startswith(_NOT_IN_FAKE)}
    assert series(fake.ask("GET", "/metrics")[2]) == real - names


def test_every_metric_that_the_smoke_program_reads_is_there() -> None:
    names = {line.partition("{")[0] for line in captured("metric_series.txt").splitlines()}
    assert {own.partition("{")[0] for own in engine("vllm").metrics.values()} <= names

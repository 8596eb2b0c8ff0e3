"""The probes' own tools: the picture, the validator, the counters, and how the program travels."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.serving.fake_vllm.eyes import described
from sparkwright.facts import programs
from sparkwright.facts.answers import parse
from sparkwright.host.lib import metrics, model_list
from sparkwright.host.lib.http import Answer, Server
from sparkwright.host.lib.records import dataclass, encode
from sparkwright.host.smoke import deep, picture
from sparkwright.host.smoke.client import DeepClient
from sparkwright.host.smoke.structured import _schema, misfits
from tests.engine.captures import CAPTURES, LLAMA_SERVER
from tests.host.lab.fake_server import launched, make_model
from tests.host.smoke.deep import WORDS, at, request
from tests.tables import Tables

cases = Tables(__file__)


@pytest.mark.parametrize("word", picture.WORDS)
def test_what_is_drawn_is_what_is_seen(word: str) -> None:
    """Two tables of letters, two readings of PNG: neither knows the other's."""
    for left, right in (("circle", "square"), ("triangle", "circle"), ("square", "triangle")):
        drawn = picture.Picture(("red", left), ("blue", right), word)
        text = described(drawn.data_url())
        assert text == f"I see a red {left} and a blue {right}, and the word {word}."


def test_no_picture_is_like_the_one_before() -> None:
    drawn = {picture.drawn() for _ in range(40)}
    assert len(drawn) > 10
    assert all(item.left[0] != item.right[0] and item.left[1] != item.right[1] for item in drawn)


SCHEMA = _schema(
    name={"type": "string"},
    size={"type": "integer", "minimum": 1},
    kind={"type": "string", "enum": ["a", "b"]},
)


@cases("value", "mistake")
def test_the_validator_says_what_does_not_fit(value: Any, mistake: list[str]) -> None:
    assert misfits(value, SCHEMA) == mistake


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_the_validator_takes_any_json(value: Any) -> None:
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


def test_the_program_runs_as_it_is_sent(tmp_path: Path) -> None:
    """Over standard input into a bare Python, as root's on a host: -I and -S."""
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
def test_names_and_context_are_read(answer: Any, names: list[str]) -> None:
    assert model_list.names(answer) == names
    assert model_list.context(answer["data"][0]) == 2048
    assert model_list.context({"id": "silent"}) is None

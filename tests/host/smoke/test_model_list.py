"""Lists of models of real engines, as they were captured."""

import json
from typing import Any

import pytest

from sparkwright.host.lib import model_list
from tests.engine.captures import CAPTURES, LLAMA_SERVER

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

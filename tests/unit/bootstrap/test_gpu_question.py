"""GPUs of boxes, asked for by ssh."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sparkwright.bootstrap import gpu_question
from sparkwright.host.lib.gpu import parse
from tests.tables import table

ANSWERS = table(__file__, "answers")


def run(words: Sequence[str]) -> tuple[int, str, str]:
    code, out, err = ANSWERS[words[-2]]["answer"]
    return code, out, err


def test_what_each_is() -> None:
    boxes = {box.name: box for box in gpu_question.boxes(dict.fromkeys(ANSWERS, "mDNS"), run)}
    assert list(boxes) == list(ANSWERS)
    for name, case in ANSWERS.items():
        assert boxes[name].gpu == case.get("gpu")
        if "why" in case:
            assert boxes[name].why == case["why"]
    assert boxes["old"].shown == "NVIDIA H200"
    assert gpu_question.boxes({}, run) == []


@pytest.mark.parametrize(("line", "kind"), table(__file__, "kinds"))
def test_its_name_for_init(line: str, kind: str | None) -> None:
    assert gpu_question.kind(parse(line)[0]) == kind


def test_ssh_asks_nobody_and_takes_no_key() -> None:
    words = gpu_question.command("spark-1")
    assert words[-3:-1] == ["--", "spark-1"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no"):
        assert option in words

"""GPUs of boxes, queried by ssh."""

from collections.abc import Sequence
from typing import Any

import pytest

from sparkwright.bootstrap import gpu_question
from sparkwright.host.lib.gpu import parse
from tests.tables import Tables

cases = Tables(__file__)

SAID = cases.data["SAID"]


def run(arguments: Sequence[str], **_: Any) -> tuple[int, str, str]:
    code, out, err = SAID[arguments[-2]]
    return code, out, err


def test_the_gpu_of_each_box_is_recognized_or_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_question, "run", run)
    result = gpu_question.boxes(SAID)
    assert [(item.name, item.gpu) for item in result] == [
        ("spark-1", "gb10"), ("rtx-1", "rtx5090"), ("old", None), ("printer", None), ("new", None),
        ("bare", None),
    ]  # fmt: skip
    assert result[2].shown == "NVIDIA A100-SXM4-80GB"
    assert [item.why for item in result[3:]] == [
        "Permission denied (publickey).", "Host key verification failed.",
        "bash: nvidia-smi: command not found",
    ]  # fmt: skip
    assert gpu_question.boxes(()) == []


@cases("line", "kind")
def test_init_recognizes_a_gpu_by_its_name(line: str, kind: str | None) -> None:
    assert gpu_question.kind(parse(line)[0]) == kind


def test_ssh_shows_no_prompt_and_accepts_no_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Sequence[str]] = []

    def no_answer(command: Sequence[str], **_: Any) -> tuple[int, str, str]:
        calls.append(command)
        return 1, "", ""

    monkeypatch.setattr(gpu_question, "run", no_answer)
    gpu_question.box("spark-1")
    assert calls[0][-3:-1] == ["--", "spark-1"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no"):
        assert option in calls[0]

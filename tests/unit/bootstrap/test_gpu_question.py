"""GPUs of boxes, asked for by ssh."""

from __future__ import annotations

from collections.abc import Sequence

from sparkwright.bootstrap import gpu_question
from sparkwright.host.lib.gpu import parse
from tests.tables import table, tables

SAID = tables("bootstrap")["SAID"]


def run(words: Sequence[str]) -> tuple[int, str, str]:
    code, out, err = SAID[words[-2]]
    return code, out, err


def test_what_each_is() -> None:
    found = gpu_question.boxes(dict.fromkeys(SAID, "mDNS"), run)
    assert [(one.name, one.gpu) for one in found] == [
        ("spark-1", "gb10"), ("rtx-1", "rtx5090"), ("old", None), ("printer", None), ("new", None),
        ("bare", None),
    ]  # fmt: skip
    assert found[2].shown == "NVIDIA H200"
    assert [one.why for one in found[3:]] == [
        "Permission denied (publickey).", "Host key verification failed.",
        "bash: nvidia-smi: command not found",
    ]  # fmt: skip
    assert gpu_question.boxes({}, run) == []


@table
def test_its_name_for_init(line: str, kind: str | None) -> None:
    assert gpu_question.kind(parse(line)[0]) == kind


def test_ssh_asks_nobody_and_takes_no_key() -> None:
    words = gpu_question.command("spark-1")
    assert words[-3:-1] == ["--", "spark-1"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no"):
        assert option in words

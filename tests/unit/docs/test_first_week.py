"""docs/first-week.md: its blocks are read, and every comment means something to its test."""

from __future__ import annotations

import pytest

from tests.fleet.first_week import PAGE, blocks


def test_the_week_is_whole() -> None:
    found = blocks(PAGE.read_text(encoding="utf-8"))
    code = "".join(block.code for block in found)
    for words in ("pip install", "init", "deploy", "chat", "rtx-1", "nightly", "rollback",
                  "maintenance", "key rotate", '"model": "Qwen/', "sparkwright import",
                  "remove"):  # fmt: skip
        assert words in code
    assert {block.before for block in found} == {
        "", "off rtx-1", "on rtx-1", "internet gone", "internet back"
    }  # fmt: skip
    assert [block.ends_with for block in found].count(1) == 2


def test_a_comment_that_means_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="means nothing"):
        blocks("## Day\n<!-- test: explode -->\n```sh\ntrue\n```\n")

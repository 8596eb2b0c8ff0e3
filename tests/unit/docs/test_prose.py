"""The check of the prose (.ci/prose.py) finds sentences that break a rule, and counts pages."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.tables import Tables
from tests.unit.docs.markdown import ROOT

cases = Tables(__file__)
PROSE: Any = type("prose", (), runpy.run_path(str(ROOT / ".ci/prose.py")))


def _broken(text: str) -> list[str]:
    return [rule for each in PROSE.sentences(text) for rule, pattern in PROSE.RULES.items()
            if pattern.search(each)]  # fmt: skip


@cases("text", "rule")
def test_a_sentence_that_breaks_a_rule_is_found(text: str, rule: str) -> None:
    assert _broken(text) == [rule]


@pytest.mark.parametrize("text", cases.data["FINE"])
def test_plain_sentences_pass(text: str) -> None:
    assert _broken(text) == []


def test_pages_docstrings_and_messages_are_read(tmp_path: Path) -> None:
    files = {
        "README.md": "# What the proxies know\n\n    What is code is passed over\n",
        "docs/page.md": "| What stops them | one that fails |\n",
        "sparkwright/module.py": '"""What it does."""\n',
        "sparkwright/messages.yaml": "id:\n  remedy: take one that fits\n  at: What\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    present = {name: number for name, number in PROSE.count(tmp_path).items() if number}
    assert present == {"pages": 2, "words": 16, "docstrings.headless": 1, "messages.pronoun": 1,
                       "pages.headless": 2, "pages.pronoun": 1}  # fmt: skip

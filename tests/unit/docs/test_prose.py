"""The check of the prose (.ci/prose.py) finds sentences that break a rule, and counts pages."""

import runpy
from typing import Any

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


@cases("text")
def test_a_sound_sentence_breaks_no_rule(text: str) -> None:
    assert not _broken(text)


def test_a_variable_without_a_noun_is_found() -> None:
    names = {*PROSE.variables("for one, (known, host) in hosts:\n    found = one.words")}
    assert names & {*PROSE._RULES["variables"]} == {"one", "known", "found"}


def test_a_docstring_that_begins_without_its_subject_is_found() -> None:
    assert PROSE.OPENING.search("Its address among other hosts.")
    assert not PROSE.OPENING.search("Whether a host is known; its address does not matter.")

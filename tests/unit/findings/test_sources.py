"""Every source of a check, a rule or an entry of the catalog is one that a reader can look up."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.libyaml import safe_load
from tests.unit.builders import ROOT

FILES = [path for folder in ("sparkwright", "catalog", "docs")
         for path in sorted((ROOT / folder).rglob("*.yaml"))]  # fmt: skip
#: An address; an issue, a repository or a file of one; a card's section; documents and code of
#: software by title; or marked as this project's own.
_KNOWN = re.compile(
    r"https?://|\b[A-Za-z0-9][\w.-]*/[\w.-]{2,}|\bcards?\b"
    r"|\bvLLM|\bNVIDIA\b|\bDocker's|\btransformers\b|\bip\(7\)|\bAGENTS\.md"
    r"|\b(sparkwright|this project|estimate|catalog|manifest|lock file|watch on the host)\b"
)
#: Nobody can look these up: a number without its owner, and people without a name.
_UNKNOWN = re.compile(r"reports? of (users|others)|(?<![\w/.-])[a-z][\w-]*#\d+|\busers report\b")


def _sources(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("source"), str):
            yield node["source"]
        for value in node.values():
            yield from _sources(value)
    elif isinstance(node, list):
        for value in node:
            yield from _sources(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_can_be_looked_up_or_is_marked_as_our_own(path: Any) -> None:
    for source in _sources(safe_load(path.read_text(encoding="utf-8"))):
        assert not _UNKNOWN.search(source), source
        assert _KNOWN.search(source), source

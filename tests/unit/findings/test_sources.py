"""A reader can look up every source of a check, a rule or an entry of the catalog."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.libyaml import safe_load
from tests.unit.builders import ROOT

FILES = {path: path.read_text(encoding="utf-8") for folder in ("sparkwright", "catalog", "docs")
         for path in (ROOT / folder).rglob("*.yaml")}  # fmt: skip
#: Valid sources: an address; an issue, a repository or a repository's file; a card's section; an
#: engine with its version, or its recipes (docs/generate/cards.py has their addresses); or a mark
#: of this project.
_KNOWN = re.compile(
    r"https?://|\b[A-Za-z0-9][\w.-]*/[\w.-]{2,}|\bcards?\b"
    r"|\bvLLM|\bSGLang|\bllama\.cpp|engine's own parser|engines' documentation"
    r"|\b(sparkwright|this project|estimate|catalog|manifest|lock file|watch on the host)\b"
)
#: Sources that a reader can't look up: a number without its repository, and people without a name.
_UNKNOWN = re.compile(r"reports? of (users|others)|(?<![\w/.-])[a-z][\w-]*#\d+|\busers report\b")


def _cut(text: str) -> Iterator[str]:
    """Unquoted values that YAML cuts at ` #12`, or at a comment within an open bracket."""
    lines = text.splitlines()
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.ScalarEvent) and event.end_mark and not event.style:
            rest = lines[event.end_mark.line][event.end_mark.column :]
            opened = event.value.count("(") > event.value.count(")")
            if re.match(r"\s+#\d", rest) or (opened and re.match(r"\s+#", rest)):
                yield event.value


def _sources(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("source"), str):
            yield node["source"]
        for value in node.values():
            yield from _sources(value)
    elif isinstance(node, list):
        for value in node:
            yield from _sources(value)


def test_every_source_is_a_reference_or_is_marked_as_our_own() -> None:
    sources = {source for text in FILES.values() for source in _sources(safe_load(text))}
    assert len(sources) > 300
    assert [text for text in sources if _UNKNOWN.search(text) or not _KNOWN.search(text)] == []


def test_no_text_is_cut_off_by_a_yaml_comment() -> None:
    assert [(path, value) for path, text in FILES.items() for value in _cut(text)] == []


def test_anonymous_users_are_refused_as_a_source() -> None:
    for path in [*(ROOT / "sparkwright").rglob("*.py"), *(ROOT / "docs").rglob("*.[mp][dy]")]:
        assert not re.search(r"reports? of users", path.read_text(encoding="utf-8")), path

"""Pages use the field's words: a reader who knows pyinfra, Docker, systemd, vLLM and HAProxy must
never meet a private one."""

from __future__ import annotations

import re

import pytest

from docs.generate.pages import pages
from tests.unit.docs.markdown import NAMES, ROOT, read

#: Private word -> what the field says.
PRIVATE = {
    r"\bdoors?\b": "proxy",
    r"\bgateways?\b": "load balancer",
    r"\bmovers?\b": "downloader",
    r"\bseeding\b": "peer sharing",
    r"\b(givers?|takers?)\b": "seed, leech",
    r"\bstrangers?\b": "unmanaged containers",
    r"\bin turns\b": "batches",
    r"\bstand-ins?\b": "fake",
    r"\bas it shall be\b": "as planned",
    r"\bwhat ails\b": "what is wrong with",
    r"\bthe way out\b": "internet access, uplink",
    r"\bmends?\b": "fixes",
    r"\bseeds? \d": "the card's name",
}
WRITTEN = [
    name for name in NAMES if name.startswith(("README", "docs/")) and name not in pages(ROOT)
]


def private(prose: str) -> list[str]:
    """Private words of a text, outside code spans."""
    text = re.sub(r"`[^`]*`", "", prose)
    return [word for word in PRIVATE if re.search(word, text, re.I)]


@pytest.mark.parametrize("name", [*WRITTEN, "README.md"])
def test_no_private_word(name: str) -> None:
    assert private(read(name).prose) == []


def test_private_words_are_found() -> None:
    assert private("Behind a door, see seed 001; `door: true` is a setting.") == [
        r"\bdoors?\b",
        r"\bseeds? \d",
    ]

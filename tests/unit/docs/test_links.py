"""Every relative link, anchor and path that a page names exists."""

import re

import pytest

from tests.tables import Tables
from tests.unit.docs.markdown import NAMES, ROOT, Page, page, read

cases = Tables(__file__)

#: Folders whose paths pages name in code spans.
_OURS = re.compile(r"(sparkwright|lab|tests|docs|catalog|templates)/[\w./-]+")


def broken(links: Page, name: str) -> list[str]:
    """Links of a page that lead nowhere, and paths in its code spans that do not exist."""
    problems = []
    for target in links.links:
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        folder = (ROOT / name).parent / path if path else ROOT / name
        relative = str(folder.resolve().relative_to(ROOT))
        if not folder.exists() or (anchor and anchor not in read(relative).anchors):
            problems.append(target)
    problems += [
        span for span in links.spans if _OURS.fullmatch(span) and not (ROOT / span).exists()
    ]
    return problems


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    assert broken(read(name), name) == []


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {target.partition("#")[0] for target in read("README.md").links}
    assert {name for name in NAMES if name.startswith("docs/")} <= linked


@cases("text")
def test_what_leads_nowhere_is_found(text: str) -> None:
    assert len(broken(page(text), "README.md")) == 1


def test_links_in_code_are_none() -> None:
    assert page("`[a](b)`\n\n    [c](d)\n\n```\n[e](f)\n```\n").links == []


def test_headings_become_anchors_as_github_makes_them() -> None:
    text = "# What is real?\n## `init`, and more\n## Twice\n## Twice\n    # no heading\n"
    anchors = {"what-is-real", "init-and-more", "twice", "twice-1"}
    assert page(text).anchors == anchors | {"no-heading"} - {"no-heading"}

"""Every relative link, anchor and path that a page names exists."""

import re

import pytest

from tests.tables import Tables
from tests.unit.docs.markdown import NAMES, ROOT, Page, page, read

cases = Tables(__file__)

#: Folders whose paths pages name in code spans.
_OURS = re.compile(r"(sparkwright|lab|tests|docs|catalog|templates)/[\w./-]+")


def broken(links: Page, name: str) -> list[str]:
    """Links of a page without a target, and paths in its code spans that do not exist."""
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
def test_every_link_has_an_existing_target(name: str) -> None:
    assert broken(read(name), name) == []


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {target.partition("#")[0] for target in read("README.md").links}
    assert {name for name in NAMES if name.startswith("docs/")} <= linked


@cases("text")
def test_a_broken_link_is_found(text: str) -> None:
    assert len(broken(page(text), "README.md")) == 1

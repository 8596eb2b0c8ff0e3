"""Generated pages equal the committed pages, and describe every key and command."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from docs.generate.commands import commands
from docs.generate.pages import PAGES, pages
from docs.generate.schema import UNDOCUMENTED
from sparkwright.catalog.reader import documented
from sparkwright.cli.lib.explain import _explanations
from tests.unit.builders import catalog
from tests.unit.cli.answering import exits
from tests.unit.docs.markdown import ROOT


@cache
def generated() -> dict[str, str]:
    """Every generated page."""
    return pages(ROOT)


@pytest.mark.parametrize("name", sorted(generated()))
def test_the_committed_page_equals_the_generated_page(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == generated()[name], "run: python -m docs.generate"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_no_key_is_undocumented(name: str) -> None:
    assert re.findall(rf"^.*{re.escape(UNDOCUMENTED)}.*$", generated()[name], re.M) == []


def test_every_command_has_a_section() -> None:
    page = generated()["docs/commands.md"]
    assert [path for path, _, _ in commands() if f"### {path}\n" not in page] == []


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_every_id_of_the_page_is_explained_without_a_site(command: str, here: Path) -> None:
    ids = set(re.findall(r"^- `([\w-]+)`", generated()["docs/checks.md"], re.M))
    assert len(ids) > 250
    texts = [item for item in _explanations(catalog()) if item.id in ids]
    assert {item.id for item in texts} == ids
    assert all(item.reason and item.source for item in texts)
    (shown,) = json.loads(exits(0, command, "--explain", "nvml-mismatch", "--json").stdout)
    assert shown["reason"]
    assert "did you mean 'nvml-mismatch'?" in exits(2, command, "--explain", "nvml-mismach").stderr


def test_the_readme_fits_on_one_screen() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_attributes_are_read_from_docstrings() -> None:
    summary, text = documented(
        "One thing.\n\nMore.\n\nAttributes:\n    a: first\n        and ``more``.\n    b, c: both."
    )
    assert summary == "One thing. More."
    assert text == {"a": "first and `more`.", "b": "both.", "c": "both."}

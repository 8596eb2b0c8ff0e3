"""Comparison of whole outputs with golden files. REGENERATE=1 writes the files instead."""

import os

from tests.unit.builders import ROOT

_FOLDER = ROOT / "tests/fixtures/golden"


def compare(name: str, text: str) -> None:
    """Compare a text with the file of this name below tests/fixtures/golden."""
    path = _FOLDER / name
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")

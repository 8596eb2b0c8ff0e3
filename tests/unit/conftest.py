"""Folders that tests of every subject work in."""

from pathlib import Path

import pytest

from tests.unit.builders import ROOT


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of this repository, an example site, as the working directory."""
    monkeypatch.chdir(ROOT)
    return ROOT

"""Files of the catalog are parsed again when they change; each file keeps its own entries."""

import datetime as dt
import json
import os
from pathlib import Path
from threading import Event

import pytest
from jinja2 import Environment

from sparkwright.config import templates
from sparkwright.documents import caches, yaml_text
from sparkwright.documents.parsed_yaml import FILE, ParsedFiles


@pytest.fixture
def entry(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a site, loaded and cached once by a run that may change something."""
    monkeypatch.setattr(caches, "WRITTEN", Event())
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "home"))
    templates._environment.cache_clear()
    caches.WRITTEN.set()
    path = here / "entry.yaml"
    path.write_text("name: a")
    _loaded(path)
    return path


def _loaded(path: Path) -> object:
    files = ParsedFiles()
    value = files.load(path)
    files.keep()
    return value


def test_an_unchanged_file_is_parsed_once(entry: Path) -> None:
    kept = FILE.read_text()
    FILE.write_text(kept.replace('"a"', '"kept"'))
    assert _loaded(entry) == {"name": "kept"}


@pytest.mark.parametrize("back", [False, True], ids=["changed", "changed, its time set back"])
def test_a_changed_file_is_parsed_again(entry: Path, back: bool) -> None:
    before = entry.stat()
    entry.write_text("name: b")
    if back:
        os.utime(entry, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _loaded(entry) == {"name": "b"}


@pytest.mark.parametrize("content", ["", "{", "[]", "[1]", '{"x": 1}', "[" * 100_000])
def test_a_damaged_cache_is_rebuilt(entry: Path, content: str) -> None:
    FILE.write_text(content)
    assert _loaded(entry) == {"name": "a"}
    assert json.loads(FILE.read_text())[str(entry)][1] == {"name": "a"}


def test_a_dry_run_writes_no_cache(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sorted(entry.parent.rglob("*"))
    monkeypatch.setattr(caches, "WRITTEN", Event())
    entry.write_text("name: b")
    assert templates.properties("fetch")
    assert _loaded(entry) == {"name": "b"}
    assert sorted(entry.parent.rglob("*")) == kept
    assert "b" not in json.loads(FILE.read_text())[str(entry)][1].values()


def test_a_template_is_compiled_once(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = templates.properties("fetch")
    kept = list(caches.of_user("templates").iterdir())
    templates._environment.cache_clear()
    monkeypatch.setattr(Environment, "compile", lambda *_: pytest.fail("compiled again"))
    assert kept
    assert templates.properties("fetch") == text


@pytest.mark.parametrize("text", ["tags: {24.10: x}", "tags: {2026-07-02: x}", "a: {1: x, yes: y}"])
def test_a_key_that_is_not_text_is_refused(entry: Path, text: str) -> None:
    entry.write_text(text)
    first = _loaded(entry)
    assert repr(_loaded(entry)) == repr(first) == repr(yaml_text.load(text))


def test_a_date_stays_a_date(entry: Path) -> None:
    entry.write_text("date: 2026-07-02")
    assert _loaded(entry) == _loaded(entry) == {"date": dt.date(2026, 7, 2)}
    assert str(entry) in json.loads(FILE.read_text())

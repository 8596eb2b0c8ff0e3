"""Report of a checkout that goes on with another checkout's fleet."""

from dataclasses import replace
from pathlib import Path

from lab import origin


def test_its_own_fleet_needs_no_word(tmp_path: Path) -> None:
    mine = origin.here()
    origin.write(mine, tmp_path / "origin.json")
    assert origin.read(tmp_path / "origin.json") == mine
    assert origin.differences(mine, origin.here()) == []


def test_another_checkout_s_is_named_with_its_age() -> None:
    mine = origin.here()
    (line,) = origin.differences(
        replace(mine, checkout="/home/a/site", since=mine.since - 600), mine
    )
    assert "/home/a/site" in line
    assert "(10 min ago)" in line


def test_machines_of_other_files_are_reported_with_the_remedy() -> None:
    mine = origin.here()
    (line,) = origin.differences(replace(mine, machines="other"), mine)
    assert "lab down" in line


def test_a_fleet_that_says_nothing_is_reported_too(tmp_path: Path) -> None:
    (tmp_path / "origin.json").write_text("{")
    assert origin.read(tmp_path / "origin.json") is None
    assert origin.read(tmp_path / "none.json") is None
    (line,) = origin.differences(None, origin.here())
    assert "lab down" in line


def test_a_digest_is_of_names_and_contents_and_not_of_what_python_compiled(tmp_path: Path) -> None:
    for folder in ("one/hub", "two/hub"):
        (tmp_path / folder / "__pycache__").mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("a")
    item, two = tmp_path / "one/hub", tmp_path / "two/hub"
    (item / "__pycache__/a.pyc").write_text("x")
    assert origin.digest([item]) == origin.digest([two])
    (two / "a.py").rename(two / "b.py")
    assert origin.digest([item]) != origin.digest([two])
    (two / "b.py").rename(two / "a.py")
    (two / "a.py").write_text("b")
    assert origin.digest([item]) != origin.digest([two])
    assert origin.digest([tmp_path / "none"]) == origin.digest([tmp_path / "none"])

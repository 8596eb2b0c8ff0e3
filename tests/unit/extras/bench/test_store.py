"""Stored results: what is kept comes back, and what can't be read is named and passed over."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparkwright.extras.bench.results import Cell, Result
from sparkwright.extras.bench.store import load, path_of, save
from sparkwright.findings.user_error import UserError
from tests.unit.extras.bench.builders import NOON, cell, result, runs

CELL = json.loads(cell().model_dump_json())


def test_a_result_is_a_file_named_by_host_service_and_utc_time(tmp_path: Path) -> None:
    berlin = NOON.astimezone(dt.timezone(dt.timedelta(hours=2)))
    path = save(tmp_path, result(when=berlin))
    assert path == tmp_path / "spark-1/qwen36/20260702T120000Z.json"
    assert json.loads(path.read_text())["schema"] == 1
    assert load(tmp_path).services == {("spark-1", "qwen36"): (result(),)}
    assert [file.suffix for file in path.parent.iterdir()] == [".json"]


_cells = st.builds(
    cell,
    category=st.sampled_from(["coding", "random", "extraction-json"]),
    prompt_tokens=st.integers(0, 10**6),
    requests=st.integers(0, 10**6),
    ttft=st.none() | st.floats(0, 1e4),
    decode=st.none() | st.floats(0, 1e6),
    acceptance=st.none() | st.floats(0, 1),
    acceptance_length=st.none() | st.floats(1, 16),
)


@given(st.lists(_cells, max_size=4), st.datetimes(dt.datetime(1, 1, 3), timezones=st.timezones()))
def test_what_is_written_is_what_is_read(cells: list[Cell], when: dt.datetime) -> None:
    item = result(*cells, when=when)
    assert Result.model_validate_json(item.model_dump_json(by_alias=True)) == item
    assert item.when == when.astimezone(dt.UTC)
    assert path_of(Path(), item).name == f"{when.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}.json"


def test_a_second_result_of_the_same_second_does_not_replace_the_first(tmp_path: Path) -> None:
    path = save(tmp_path, result())
    with pytest.raises(UserError) as raised:
        save(tmp_path, result(cell(decode=1)))
    assert str(path) in str(raised.value)
    assert load(tmp_path).services["spark-1", "qwen36"] == (result(),)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "not valid JSON"),
        ('{"host": "spa', "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"schema": 2}', "up to schema 1"),
        ({"gpu": None}, ".json: gpu"),
        ({"cells": [{"category": "sonnets"}]}, "cells.0.category"),
        ({"when": "2026-07-02T12:00:00"}, ".json: when"),
        ({"cells": [{**CELL, "concurrency": 10**400}]}, "cells.0.concurrency"),
        ({"cells": [{**CELL, "measures": {"decode": float("inf")}}]}, "not valid JSON"),
        ({"cells": [{**CELL, "measures": {"decode": 1e10}}]}, "cells.0.measures.decode"),
        ({"cells": [{**CELL, "measures": {"decode": -1}}]}, "cells.0.measures.decode"),
        ({"when": "0001-01-01T00:00:00+23:00"}, ".json: when"),
        ({"host": "spark-2"}, "a result of spark-2/qwen36, not of spark-1/qwen36"),
    ],
)
def test_a_broken_file_is_named_and_the_others_count(
    tmp_path: Path, written: str | dict[str, Any], message: str
) -> None:
    good = save(tmp_path, result())
    bad = good.with_name("20260703T120000Z.json")
    whole = json.loads(good.read_text())
    bad.write_text(written if isinstance(written, str) else json.dumps({**whole, **written}))
    data = load(tmp_path)
    assert data.services == {("spark-1", "qwen36"): (result(),)}
    assert all(
        problem.subject.place.startswith(str(bad)) and problem.remedy for problem in data.problems
    )
    assert message in " ".join(
        f"{problem.subject} {problem.observed} {problem.remedy}" for problem in data.problems
    )


def test_keys_of_a_newer_version_are_passed_over(tmp_path: Path) -> None:
    path = save(tmp_path, result())
    path.write_text(json.dumps({**json.loads(path.read_text()), "weather": "hot"}))
    assert load(tmp_path).services["spark-1", "qwen36"] == (result(),)


def test_only_the_newest_are_read_when_no_more_are_asked_for(tmp_path: Path) -> None:
    assert load(tmp_path / "nowhere").services == {}
    every = runs(1, 2, 3, 4)
    for item in every:
        save(tmp_path, item)
    assert load(tmp_path, last=2).services["spark-1", "qwen36"] == tuple(every[-2:])
    assert load(tmp_path).services["spark-1", "qwen36"] == tuple(every)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", ""])
def test_a_name_never_leads_out_of_the_directory(name: str) -> None:
    with pytest.raises(ValidationError):
        result(host=name)

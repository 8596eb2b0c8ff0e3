"""Stored results of any content, on the page."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench.store import load
from sparkwright.extras.dashboard.render import html, plain, text
from tests.fuzz.drawn_values import changed, json_values, paths
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import NOON, cell, result
from tests.unit.extras.dashboard.pages import benches, page_of

WRITTEN: Any = json.loads(result(cell(), cell(concurrency=4)).model_dump_json(by_alias=True))
_values = json_values(st.text(max_size=8), st.sampled_from([10**400, -1, 1e308, "\ud800"]))


@given(st.sampled_from(paths(WRITTEN)), _values)
def test_a_damaged_file_is_named_on_a_complete_page(path: tuple[Any, ...], value: Any) -> None:
    written = changed(WRITTEN, path, value)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spark-1/qwen36/20260702T120000Z.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(written))
        results, problems = load(Path(folder))
    page = page_of(made=NOON, catalog=catalog(), results=results, problems=problems)
    assert (len(benches(page)) == 1) != bool(problems)
    assert all(problem.subject.place.startswith(str(file)) for problem in problems)
    html(page).encode()
    json.dumps(plain(page)).encode()
    text(page).encode()

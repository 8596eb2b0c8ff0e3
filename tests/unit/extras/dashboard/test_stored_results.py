"""Stored results of any content, on the page."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench.store import load
from sparkwright.extras.dashboard.render import html, plain, text
from tests.unit.builders import catalog
from tests.unit.extras.bench.builders import NOON, cell, result
from tests.unit.extras.dashboard.pages import benches, page_of

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([10**400, -1, 1e308, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)  # fmt: skip


@given(st.data())
def test_a_damaged_file_is_named_on_a_complete_page(data: st.DataObject) -> None:
    written = json.loads(result(cell(), cell(concurrency=4)).model_dump_json(by_alias=True))
    position: Any = written
    while True:
        key = data.draw(st.sampled_from(list(range(len(position)) if isinstance(position, list)
                                             else position)))  # fmt: skip
        if (
            not isinstance(position[key], dict | list)
            or not position[key]
            or data.draw(st.booleans())
        ):
            break
        position = position[key]
    position[key] = data.draw(_values)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spark-1/qwen36/20260702T120000Z.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(written))
        findings = load(Path(folder))
    page = page_of(
        made=NOON, catalog=catalog(), results=findings.services, problems=findings.problems
    )
    assert (len(benches(page)) == 1) != bool(findings.problems)
    assert all(problem.subject.place.startswith(str(file)) for problem in findings.problems)
    html(page).encode()
    json.dumps(plain(page)).encode()
    text(page).encode()

"""The file that `sparkwright status` leaves for the page."""

from __future__ import annotations

import json
from pathlib import Path

from sparkwright.extras.report.contents import read_history
from sparkwright.findings.finding import Finding
from sparkwright.results.status import switches
from tests.unit.results.test_status import answer


def test_the_fleets_page_reads_the_history(tmp_path: Path) -> None:
    kept = tmp_path / "status.json"
    kept.write_text(json.dumps({"history": switches({"spark-1": answer()})}))
    problems: list[Finding] = []
    (switch,) = read_history(kept, problems)
    assert not problems
    assert (switch.host, switch.after, switch.ended) == ("spark-1", "b" * 12, "serving")

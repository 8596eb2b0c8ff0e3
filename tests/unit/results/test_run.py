"""The report: what is said at the end of a run, and the same as data."""

from __future__ import annotations

import json
from typing import Any

from sparkwright.checks.smoke.result import Smoke
from sparkwright.host.service import CheckResult
from sparkwright.results.run import Row, ServiceRow, as_json, render

SERVICE = ServiceRow(
    name="qwen36",
    address="10.0.0.1:8000",
    served_names=("main", "fast"),
    tag="v1",
    image=f"ghcr.io/a/b:sha256-{'0' * 64}",
    models={"org/body": "c" * 40},
    release="abc",
    smoke=Smoke(passed=4, total=4, seconds=1.25, failures=()),
)


def row(**changes: Any) -> Row:
    """A host in order."""
    data: dict[str, Any] = {
        "host": "spark-1",
        "services": (SERVICE,),
        "refused": None,
        "findings": (),
        "changes": (),
        "executions": 2,
    }
    return Row(**{**data, **changes})


def text(*rows: Row, dry: bool = False) -> str:
    """The rendered report."""
    return render(rows, dry=dry, seconds=1.0, key_hint="$(cat key)")


def test_a_serving_host_is_a_line_with_address_proof_and_bytes() -> None:
    said = text(row())
    line = next(line for line in said.splitlines() if line.startswith("spark-1"))
    assert line.split("  ")[0] == "spark-1"
    for word in ("serving", "http://10.0.0.1:8000/v1", "4/4 in 1.2 s", "v1 sha256-000000000000"):
        assert word in line
    assert "main, fast from org/body@cccccccccccc" in said
    assert '-H "Authorization: Bearer $(cat key)"' in said
    assert "NOT as planned" not in said


def test_a_refused_host_is_named_with_its_reason_and_nothing_is_offered_to_ask() -> None:
    bare = ServiceRow(**{**SERVICE.__dict__, "smoke": None})
    said = text(row(refused="refused by preflight: gpu", services=(bare,)))
    assert "left alone" in said
    assert "spark-1: refused by preflight: gpu" in said
    assert said.rstrip().endswith("NOT as planned: spark-1")
    assert "Ask it" not in said


def test_a_host_that_failed_after_changes_is_not_left_alone() -> None:
    assert "failed" in text(row(refused="no answer", changes=("made /opt",)))


def test_a_dry_run_promises_nothing() -> None:
    bare = ServiceRow(**{**SERVICE.__dict__, "smoke": None})
    assert "planned" in text(row(services=(bare,)), dry=True)


def test_the_same_as_data() -> None:
    data = json.loads(as_json([row(changes=("x",))], dry=False))
    assert data["hosts"][0]["changes"] == ["x"]
    assert data["hosts"][0]["services"][0]["smoke"]["passed"] == 4


def test_a_failed_check_is_reported_in_its_own_words() -> None:
    verdict = Smoke.of(
        [
            CheckResult("health", True, 1.0, "200"),
            CheckResult("generation", False, 2.0, "wedged"),
        ]
    )
    assert (verdict.passed, verdict.total, verdict.seconds) == (1, 2, 3.0)
    assert verdict.failures == ("generation: wedged",)
    assert [(check.name, check.ok) for check in verdict.checks] == [
        ("health", True), ("generation", False),
    ]  # fmt: skip


def test_a_host_in_maintenance_is_neither_changed_nor_failed() -> None:
    bare = ServiceRow(**{**SERVICE.__dict__, "smoke": None})
    seen = row(left="in maintenance for 3 min, by ann@laptop: a new fan", services=(bare,))
    said = text(seen)
    line = next(line for line in said.splitlines() if line.startswith("spark-1"))
    assert line.split() == ["spark-1", "qwen36", "maintenance", "-", "-", "-", "-"]
    assert "  spark-1: in maintenance for 3 min, by ann@laptop: a new fan: left alone" in said
    assert "0 changes" in said
    assert "NOT as planned" not in said

"""One set of thresholds: a changed one changes doctor, watch and alert rules alike."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from sparkwright.checks.service import thresholds
from sparkwright.checks.service.diagnose import diagnose
from sparkwright.checks.service.facts import Facts
from sparkwright.checks.service.watch_plan import watch_of
from sparkwright.host.lib.records import decode
from sparkwright.host.watch import evaluation
from sparkwright.host.watch.state import Sample, Thresholds
from tests.unit.builders import plan, wanted
from tests.unit.checks.service.builders import NOW, look, service, spark
from tests.unit.checks.service.test_verdicts import SERVICES, ring

TIB = 1024**4


def _watch() -> dict[str, float]:
    """What the watch on a host is given."""
    host_plan = plan()
    found = watch_of(host_plan, wanted(host_plan).releases)
    assert found is not None
    limits: dict[str, float] = json.loads(found.config)["limits"]
    return limits


def _doctor(facts: Facts) -> set[str]:
    return {finding.id for finding in diagnose("spark-1", facts)}


def _changed(monkeypatch: pytest.MonkeyPatch, **changes: float) -> None:
    changed = replace(thresholds.THRESHOLDS, **changes)  # type: ignore[arg-type]
    monkeypatch.setattr(thresholds, "THRESHOLDS", changed)


@pytest.mark.parametrize(
    ("changes", "name", "facts", "sample"),
    [
        (
            {"collapsed": 0.5}, "acceptance-collapse", spark(),
            ring(120),
        ),
        (
            {"cache_full": 0.35}, "kv-cache-full",
            spark(service=service(metrics=[look(NOW - 5, cache_used=0.4),
                                           look(cache_used=0.4)])),
            ring(30),
        ),
        (
            {"disk_least": 0.5}, "disk-full", spark(),
            ring(3),
        ),
        (
            {"drafted": 400_000, "collapsed": 0.5}, None, spark(),
            ring(120),
        ),
    ],
)  # fmt: skip
def test_a_changed_threshold_changes_doctor_and_watch(
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, float],
    name: str | None,
    facts: Facts,
    sample: list[Sample],
) -> None:
    before = _watch()
    assert _doctor(facts) == set()
    assert evaluation.judge(sample, SERVICES, decode(Thresholds, before)) == []
    _changed(monkeypatch, **changes)
    expected = {name} if name else set()
    assert _doctor(facts) == expected
    found = evaluation.judge(sample, SERVICES, decode(Thresholds, _watch()))
    assert {one.name for one in found} == expected
    assert _watch() == {**before, **changes}


@pytest.mark.parametrize(
    "name", [one.name for one in fields(thresholds.Thresholds)]
)  # fmt: skip
def test_the_watch_is_given_every_threshold(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _changed(monkeypatch, **{name: 7})
    assert _watch()[name] == 7

"""One set of thresholds: a changed threshold changes both doctor and watch."""

import pytest

from sparkwright.checks.service.diagnose import diagnose
from sparkwright.checks.service.facts import Facts
from sparkwright.findings import thresholds
from sparkwright.host.watch import evaluation
from sparkwright.host.watch.state import Sample
from tests.unit.checks.service.builders import NOW, look, service, spark
from tests.unit.checks.service.test_verdicts import SERVICES, ring

TIB = 1024**4


def _doctor(facts: Facts) -> set[str]:
    return {finding.id for finding in diagnose("spark-1", facts)}


def _watch(sample: list[Sample]) -> set[str]:
    return {item.name for item in evaluation.judge(sample, SERVICES, thresholds.limits())}


def _changed(monkeypatch: pytest.MonkeyPatch, **changes: float) -> None:
    changed = thresholds.limits() | changes
    monkeypatch.setattr(thresholds, "limits", lambda: changed)


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
    assert _doctor(facts) == set()
    assert _watch(sample) == set()
    _changed(monkeypatch, **changes)
    expected = {name} if name else set()
    assert _doctor(facts) == expected
    assert _watch(sample) == expected

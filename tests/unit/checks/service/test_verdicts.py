"""Verdicts of the watch on rings of planted samples."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.findings import thresholds
from sparkwright.host.lib.records import decode
from sparkwright.host.watch import evaluation as verdicts
from sparkwright.host.watch.state import Sample, WatchFinding

SERVICES = {"qwen36": 900.0}
TIB = 1024**4
NOW = 1_800_000_000.0
COUNTERS = ("running", "waiting", "cache_used", "progress", "drafted", "accepted")

Change = Callable[[int], dict[str, Any]]


def ring(minutes: int, change: Change = lambda _: {}, host: Change = lambda _: {}) -> list[Sample]:
    """One sample a minute of a working service; the last rows get the remaining minutes."""
    plain: list[dict[str, Any]] = [
        {
            "at": NOW - 60 * left,
            "switching": False,
            "gpu": {},
            "disks": {"/": [TIB, 3 * TIB]},
            "services": {
                "qwen36": _sample(
                    {
                        "health": 200, "active": "active", "restarts": 0, "running": 2.0,
                        "waiting": 0.0, "cache_used": 0.4, "progress": 1e6 - 5000 * left,
                        "drafted": 1e6 - 2000 * left, "accepted": 4e5 - 800 * left, "drift": [],
                        **change(left),
                    }
                )
            },
            **host(left),
        }
        for left in reversed(range(minutes))
    ]  # fmt: skip
    return [decode(Sample, item) for item in plain]


def _sample(values: dict[str, Any]) -> dict[str, Any]:
    """A service's sample: its counters are given separately."""
    return {**values, "metrics": {name: values[name] for name in COUNTERS}}


def _gpu(name: str, text: str) -> dict[str, Any]:
    return {"gpu": {name: text} if text else {}}


def judged(samples: list[Sample]) -> list[tuple[str, str]]:
    """Names and severities of the findings."""
    result = verdicts.judge(samples, SERVICES, thresholds.limits())
    return [(item.name, item.severity) for item in result]


def _acceptance(share: float, minutes: int) -> Change:
    """Acceptance of 40 % until some minutes ago, and of ``share`` since then."""

    def change(left: int) -> dict[str, Any]:
        lately = max(0, minutes - left)
        total = 1e6 - 2000 * left
        return {"accepted": 0.4 * (total - 2000 * lately) + share * 2000 * lately}

    return change


ILL: dict[str, tuple[list[Sample], str]] = {
    "wedge": (ring(10, lambda left: {"progress": 5.0} if left < 6 else {}), "error"),
    "acceptance-collapse": (ring(120, _acceptance(0.001, 20)), "error"),
    "acceptance-decays": (ring(120, _acceptance(0.05, 20)), "warning"),
    "kv-cache-full": (ring(30, lambda left: {"cache_used": 1.0} if left < 15 else {}), "warning"),
    "restarts": (ring(30, lambda left: {"restarts": int(left < 9)}), "warning"),
    "given-up": (ring(3, lambda _: {"active": "failed", "health": None, "restarts": 3}), "error"),
    "not-serving": (ring(30, lambda left: {"health": None if left < 20 else 200}), "error"),
    "gpu-heat": (ring(12, host=lambda left: _gpu("gpu-heat", "88 C" if left % 3 else "")), "error"),
    "gpu-power-brake": (ring(12, host=lambda _: _gpu("gpu-power-brake", "90 W")), "error"),
    "gb10-low-power": (ring(12, host=lambda _: _gpu("gb10-low-power", "513 MHz")), "error"),
    "gpu-silent": (ring(3, host=lambda _: _gpu("gpu-silent", "no answer")), "error"),
    "disk-full": (ring(3, host=lambda _: {"disks": {"/": [TIB // 50, TIB]}}), "error"),
    "disk-fills": (
        ring(120, host=lambda left: {"disks": {"/": [int(0.2 * TIB + left * 2e8), TIB]}}),
        "warning",
    ),
    "drift": (ring(3, lambda _: {"drift": ["compose.yaml was changed by hand"]}), "warning"),
}


def test_a_day_without_trouble_has_no_finding() -> None:
    assert judged(ring(1440)) == []
    assert judged([]) == []


@pytest.mark.parametrize("name", sorted(ILL))
def test_a_fault_causes_only_its_finding(name: str) -> None:
    samples, severity = ILL[name]
    assert judged(samples) == [(name, severity)]


def test_the_doctor_explains_every_verdict() -> None:
    """Each verdict of the watch has an explanation in `sparkwright doctor`."""
    assert set(ILL) <= set(CHECKS.texts)


@pytest.mark.parametrize(
    ("reason", "samples"),
    [
        ("nobody asks", ring(10, lambda _: {"progress": 5.0, "running": 0.0})),
        ("three minutes only", ring(10, lambda left: {"progress": 5.0} if left < 4 else {})),
        ("prose after code", ring(120, _acceptance(0.11, 11))),
        ("a minute of poems", ring(120, _acceptance(0.0, 1))),
        ("too few drafts", ring(10, lambda left: {"drafted": 100 - left, "accepted": 0.0})),
        ("began anew", ring(120, lambda left: {"drafted": 0, "accepted": 0} if left < 9 else {})),
        ("full for a moment", ring(30, lambda left: {"cache_used": 1.0} if left < 5 else {})),
        ("a boot", ring(30, lambda left: {"health": None} if left < 12 else {})),
        ("started again by hand", ring(30, lambda left: {"restarts": 2 if left > 9 else 0})),
        ("hot for a minute", ring(12, host=lambda left: _gpu("gpu-heat", "88 C" * (left == 3)))),
        ("a fetch that ended", ring(
            300, host=lambda left: {"disks": {"/": [int(0.3 * TIB + max(0, left - 60) * 9e8), TIB]}}
        )),
        ("a deploy goes on", ring(3, lambda left: {"drift": ["x"] if left == 0 else []})),
        ("a switch", ring(30, lambda _: {"health": None, "active": "failed"},
                          host=lambda _: {"switching": True})),
        ("after a switch", ring(30, lambda left: {"health": None} if left > 2 else {},
                                host=lambda left: {"switching": left == 3})),
    ],
)  # fmt: skip
def test_harmless_values_have_no_finding(reason: str, samples: list[Sample]) -> None:
    assert judged(samples) == [], reason


def test_a_trend_predicts_the_time_of_a_full_disk() -> None:
    result = verdicts.judge(
        ring(120, host=lambda left: {"disks": {"/": [int(0.2 * TIB + left * 1e9), TIB]}}),
        SERVICES, thresholds.limits(),
    )  # fmt: skip
    assert result[0].severity == "error"
    assert result[0].seen == "/: 205 of 1024 GiB free, full in about 4 h"


def test_the_ring_keeps_a_day_and_stays_small() -> None:
    kept: list[Sample] = []
    for minute in range(3 * 1440):
        kept = verdicts.kept([*kept, Sample(60.0 * minute)])
    now = kept[-1].at
    assert now - kept[0].at > 23 * 3600
    assert sum(now - item.at <= 3600 for item in kept) == 61
    assert len(kept) < 210
    # A clock that was set back leaves no sample in the future.
    assert verdicts.kept([*kept, Sample(0.0)]) == [Sample(0.0)]


def test_a_repeated_finding_keeps_its_start_time() -> None:
    watch_finding = WatchFinding("wedge", "a", "error", "x")
    first = verdicts.carried([watch_finding], [], 100.0)
    assert first == [replace(watch_finding, since=100.0)]
    assert verdicts.carried([replace(watch_finding, seen="y")], first, 200.0)[0].since == 100.0

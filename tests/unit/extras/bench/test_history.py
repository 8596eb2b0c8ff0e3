"""A service against its own past: what counts as slower, and what changed since."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.extras.bench.history import regressions
from sparkwright.extras.bench.results import Result
from tests.unit.extras.bench.builders import cell, runs


def lost_measures(*decodes: float, **changes: Any) -> list[str]:
    """Measures that the last of these daily runs lost."""
    every = runs(*decodes, **changes)
    return [regression.measure for regression in regressions(every[-1], every)]


def test_a_tenth_less_than_usual_is_reported_with_what_is_usual() -> None:
    every = runs(100, 101, 99, 90)
    (regression,) = regressions(every[-1], every)
    assert (regression.measure, regression.now, regression.usual, regression.runs) == (
        "decode",
        90,
        100,
        3,
    )
    assert regression.change == pytest.approx(-0.1)
    assert regression.bound == pytest.approx(5)


@pytest.mark.parametrize(
    ("decodes", "lost"),
    [
        ((100, 101, 99, 95.5), False),  # less than the measure's noise
        ((100, 101, 99, 94.5), True),
        ((100, 90, 110, 100, 110, 80), False),  # a past that varies widens the bound
        ((100, 90, 110, 100, 110, 50), True),
        ((100, 100, 100, 50, 100, 90), True),  # one bad run does not hide the next
        ((*[200.0] * 6, *[100.0] * 5, 99), False),  # only the last five runs count
        ((100, 100, 100, 150), False),  # faster is no regression
        ((100, 100, 50), False),  # two earlier runs say nothing yet
    ],
)
def test_a_decode_rate_is_lost_beyond_the_bound(decodes: tuple[float, ...], lost: bool) -> None:
    assert lost_measures(*decodes) == ["decode"] * lost


def test_times_are_worse_when_they_are_longer() -> None:
    every = [
        item.model_copy(update={"cells": (cell(decode=100, ttft=ttft),)})
        for item, ttft in zip(runs(1, 2, 3, 4), (0.1, 0.1, 0.1, 0.2), strict=True)
    ]
    assert [item.measure for item in regressions(every[-1], every)] == ["ttft"]
    assert regressions(every[-1], [*every[:1], every[-1]]) == ()


def test_other_loads_gpus_generators_services_and_later_runs_do_not_count() -> None:
    now = runs(100, 100, 100, 50)[-1]
    past = runs(100, 100, 100)
    assert regressions(now, past)

    elsewhere: list[dict[str, Any]] = [
        {"service": "other"}, {"host": "spark-2"}, {"cells": (cell(concurrency=4),)},
        {"when": now.when}, {"gpu": replace(past[0].gpu, name="H200")},
        {"generator": past[0].generator.model_copy(update={"name": "another"})},
    ]  # fmt: skip
    for update in elsewhere:
        assert not regressions(now, [run.model_copy(update=update) for run in past])


def test_what_changed_since_the_run_before_is_named_then_and_some_runs_later() -> None:
    past = runs(100, 100, 100)
    new = {"name": "NVIDIA GB10", "driver": "581.10"}
    first, second, now = later(50, 51, 49, gpu=new, kernel="6.14", release="aaaabbbbcccc")
    both = ("driver 580.95.05 -> 581.10", "release 1b45a560efec -> aaaabbbbcccc")
    (regression,) = regressions(first, past)
    assert (regression.since, regression.began) == (both, first.when)
    first = first.model_copy(update={"release": past[0].release})
    (regression,) = regressions(now, [*past, first, second])
    assert (regression.since, regression.began) == (both[:1], first.when)


def test_a_kernel_that_changed_is_suspected_and_one_that_is_known_first_is_not() -> None:
    (now,) = later(50, kernel="6.14")
    assert regressions(now, runs(100, 100, 100, kernel="6.11"))[0].since == ("kernel 6.11 -> 6.14",)
    assert regressions(now, runs(100, 100, 100))[0].since == ()


def later(*decodes: float, **changes: Any) -> list[Result]:
    """Runs of the next month."""
    return [run.model_copy(update={"when": run.when.replace(month=8)})
            for run in runs(*decodes, **changes)]  # fmt: skip

"""Results against the cards and against a service's earlier runs."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench.compare import CellComparison, Figure, Verdict, compare, judge, tables
from sparkwright.extras.bench.history import regressions
from sparkwright.extras.bench.results import MEASURES, Cell, Result
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import IMAGE, cell, result, runs

cases = Tables(__file__)

CAUSES = [cause for group in catalog().causes.values() for cause in group.causes]
CASES = safe_load(Path(__file__).with_name("comparisons.yaml").read_text())
OMNI = {"name": "ghcr.io/aeon-7/vllm-spark-omni-q36:v1.2"}
GEMMA, DRAFTER = (
    catalog().models[f"gemma4-26b-a4b-{kind}"].repository for kind in ("nvfp4", "dflash")
)


def compared(row: Result) -> CellComparison:
    """The only cell of a result."""
    (findings,) = compare(row, tables(row, catalog()), CAUSES)
    return findings


def verdicts(*cells: Cell, **changes: Any) -> dict[str, Verdict]:
    """Comparisons of the only cell, by measure."""
    return {verdict.measure: verdict for verdict in compared(result(*cells, **changes)).verdicts}


@pytest.mark.parametrize("name", CASES["verdicts"])
def test_a_load_is_compared_with_its_own_figures(name: str) -> None:
    case = CASES["verdicts"][name]
    findings = verdicts(cell(**case.get("cell", {})), **case.get("result", {}))
    assert sorted(findings) == case.get("measures", sorted(findings))
    assert case.get("without") not in findings
    for measure, attributes in case.get("figures", {}).items():
        for attribute, expected in attributes.items():
            expected = tuple(expected) if isinstance(expected, list) else expected
            assert getattr(findings[measure], attribute) == pytest.approx(expected), attribute


@pytest.mark.parametrize("name", CASES["causes"])
def test_a_gap_has_its_likely_causes(name: str) -> None:
    case = CASES["causes"][name]
    item = result(cell(**case.get("cell", {})), **case.get("result", {}))
    ids = [cause.id for cause in compared(item).causes]
    first = case.get("first", [])
    assert ids == case.get("all", ids)
    assert ids[: len(first)] == first
    assert set(ids) >= set(case.get("among", ()))
    assert not set(ids) & set(case.get("not", ()))


def test_the_newer_of_two_equal_figures_counts_in_any_order() -> None:
    (old,) = [t for t in tables(result(), catalog())
              if t.measurement.name == "qwen36-35b-v0.23.0-single-stream"]  # fmt: skip
    later = {"name": "later", "date": dt.date(2026, 6, 20)}
    new = replace(old, measurement=old.measurement.model_copy(update=later))
    for order in ((old, new), (new, old)):
        (findings,) = compare(result(), order)
        assert {verdict.table for verdict in findings.verdicts} == {"later"}


def test_a_service_without_drafts_is_not_compared_with_a_drafting_service() -> None:
    stock = {"image": {"name": f"{catalog().images['vllm-openai'].repository}:v0.20.1"}}
    assert verdicts(models={GEMMA: "c" * 40}, **stock)
    assert verdicts(models={GEMMA: "c" * 40, DRAFTER: "d" * 40}, **stock) == {}


@given(st.sampled_from(MEASURES), st.floats(1e-3, 1e4), st.floats(1, 2), st.floats(1e-3, 1e4))
def test_a_verdict_is_sound(base: Any, low: float, width: float, measured: float) -> None:
    table = tables(result(), catalog())[0]
    findings = judge(base, measured, Figure(table, low, low * width, low, low * width, None))
    assert findings.low <= low
    assert findings.high >= low * width
    assert (findings.state == "in range") == (findings.low <= measured <= findings.high)
    if low <= measured <= low * width:
        assert (findings.ratio, findings.state) == (1, "in range")
    if findings.state == "worse":
        assert (findings.ratio < 1) == base.more_is_better
    if findings.state == "better":
        assert (findings.ratio > 1) == base.more_is_better


def test_a_known_defect_of_a_tag_is_named_for_that_tag_only() -> None:
    def run(tag: str, *cells: Cell) -> Result:
        models = {GEMMA: "c" * 40, DRAFTER: "d" * 40}
        return result(*cells, models=models, image={"name": f"{IMAGE}:{tag}"})

    slow = cell(prompt_tokens=9000, decode=20, acceptance=0.01, acceptance_length=1.1)
    old = [cause.id for cause in compared(run("2026-06-11-pr41703", slow)).causes]
    assert "drafter-window-ignored" not in old
    assert "drafter-revision" in old
    against = tables(run("2026-06-11-pr41703"), catalog())
    (findings,) = compare(run("2026-06-04-pr44389", slow), against, CAUSES)
    assert [cause.id for cause in findings.causes][:2] == [
        "prefix-cache-corruption", "drafter-window-ignored",
    ]  # fmt: skip


def test_causes_have_names_of_their_own_and_tags_that_exist() -> None:
    assert len({cause.id for cause in CAUSES}) == len(CAUSES)
    tags = {tag for image in catalog().images.values() for tag in image.tags}
    assert all(tag in tags for cause in CAUSES for tag in cause.tags)
    assert all(cause.look and cause.source for cause in CAUSES)


def test_every_published_figure_can_be_matched_or_is_listed() -> None:
    """sparkwright's measures, of rows that name a load: no condition of sparkwright's hides a
    row.
    """
    reached = {"decode", "aggregate", "tpot", "ttft", "ttft_p95", "prefill", "acceptance"}
    for row in catalog().measurements["qwen36-35b-omni-concurrency"].rows:
        item = cell(category="mixed", concurrency=row.concurrency, sampling_temperature=0.7)
        keys = {m.published for m in MEASURES if m.name in verdicts(item, image=OMNI)}
        assert keys == {key for key in reached if getattr(row, key) is not None}


def lost_measures(*decodes: float, **changes: Any) -> list[str]:
    """Measures that the last of these daily runs lost."""
    every = runs(*decodes, **changes)
    return [regression.measure for regression in regressions(every[-1], every)]


def test_a_tenth_less_than_usual_is_reported_with_the_median() -> None:
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


@cases("decodes", "lost", more=[((*[200.0] * 6, *[100.0] * 5, 99), False)])
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


def test_a_change_is_named_at_the_first_slow_run_and_some_runs_later() -> None:
    past = runs(100, 100, 100)
    new = {"name": "NVIDIA GB10", "driver": "581.10"}
    first, second, now = later(50, 51, 49, gpu=new, kernel="6.14", release="aaaabbbbcccc")
    both = ("driver 580.95.05 -> 581.10", "release 1b45a560efec -> aaaabbbbcccc")
    (regression,) = regressions(first, past)
    assert (regression.since, regression.began) == (both, first.when)
    first = first.model_copy(update={"release": past[0].release})
    (regression,) = regressions(now, [*past, first, second])
    assert (regression.since, regression.began) == (both[:1], first.when)


def test_a_changed_kernel_is_suspected_and_a_newly_known_kernel_is_not() -> None:
    (now,) = later(50, kernel="6.14")
    assert regressions(now, runs(100, 100, 100, kernel="6.11"))[0].since == ("kernel 6.11 -> 6.14",)
    assert regressions(now, runs(100, 100, 100))[0].since == ()


def later(*decodes: float, **changes: Any) -> list[Result]:
    """Runs of the next month."""
    return [run.model_copy(update={"when": run.when.replace(month=8)})
            for run in runs(*decodes, **changes)]  # fmt: skip

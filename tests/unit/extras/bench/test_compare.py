"""Results compared with the cards."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.catalog.measurements import Row
from sparkwright.extras.bench.compare import CellComparison, Verdict, compare, judge, tables
from sparkwright.extras.bench.results import MEASURES, Cell, Measure, Result
from tests.libyaml import safe_load
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import IMAGE, cell, result

CAUSES = [cause for group in catalog().causes.values() for cause in group.causes]
CASES = safe_load(Path(__file__).with_name("comparisons.yaml").read_text())
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


def test_the_newer_of_two_equal_figures_is_used_in_any_order() -> None:
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


@given(st.sampled_from(MEASURES[:8]), st.floats(1, 1e4), st.floats(1, 2), st.floats(1e-3, 1e4))
def test_a_verdict_agrees_with_its_range(
    base: Measure, low: float, width: float, measured: float
) -> None:
    table = tables(result(), catalog())[0]
    row = Row.model_validate({base.published: (low, low * width)})
    verdict = judge(base, measured, table, row)
    least, most = verdict.published
    assert verdict.low <= least <= most <= verdict.high
    assert (verdict.state == "in range") == (verdict.low <= measured <= verdict.high)
    if least <= measured <= most:
        assert (verdict.ratio, verdict.state) == (1, "in range")
    if verdict.state != "in range":
        assert (verdict.ratio < 1) == (base.more_is_better == (verdict.state == "worse"))


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


def test_causes_have_unique_names_and_existing_tags() -> None:
    assert len({cause.id for cause in CAUSES}) == len(CAUSES)
    tags = {tag for image in catalog().images.values() for tag in image.tags}
    assert all(tag in tags for cause in CAUSES for tag in cause.tags)
    assert all(cause.look and cause.source for cause in CAUSES)

"""Results against the cards: which figure, which range, and what may explain a gap."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench.compare import CellComparison, Figure, Verdict, compare, judge, tables
from sparkwright.extras.bench.results import MEASURES, Cell, Result
from tests.unit.builders import catalog
from tests.unit.extras.bench.builders import IMAGE, cell, result

CAUSES = [cause for group in catalog().causes.values() for cause in group.causes]


def compared(one: Result) -> CellComparison:
    """The only cell of a result."""
    (found,) = compare(one, tables(one, catalog()), CAUSES)
    return found


def verdicts(*cells: Cell, **changes: Any) -> dict[str, Verdict]:
    """By measure, those of the only cell."""
    return {verdict.measure: verdict for verdict in compared(result(*cells, **changes)).verdicts}


def causes(*cells: Cell, **changes: Any) -> list[str]:
    """What is named for the only cell."""
    return [cause.id for cause in compared(result(*cells, **changes)).causes]


def test_the_cards_own_figures_are_in_range_at_ratio_one() -> None:
    found = verdicts()
    assert {name: verdict.ratio for name, verdict in found.items()} == {
        name: pytest.approx(1)
        for name in ("decode", "decode_total", "tpot", "ttft", "prefill", "acceptance")
    }
    assert {verdict.state for verdict in found.values()} == {"in range"}
    assert found["decode"].table == "qwen36-35b-v0.23.0-single-stream"
    assert found["decode_total"].table == "qwen36-35b-v0.23.0-concurrency"
    assert found["ttft"].published == pytest.approx((0.088, 0.088))


def test_every_published_single_stream_figure_is_found_for_its_own_load() -> None:
    table = catalog().measurements["qwen36-35b-v0.23.0-single-stream"]
    for row in table.rows:
        found = verdicts(cell(category=row.category, decode=row.decode))
        assert found["decode"].published == (row.decode, row.decode)
        assert found["decode"].ratio == 1


@pytest.mark.parametrize(
    ("changes", "table", "published"),
    [
        ({"category": "prose", "concurrency": 8}, "qwen36-35b-v0.23.0-concurrency", (252, 252)),
        ({"concurrency": 64}, "qwen36-35b-2026-06-19-revalidation", (705, 781)),
        ({"category": "prose", "concurrency": 64}, "qwen36-35b-2026-06-19-revalidation",
         (430, 474)),
    ],
)  # fmt: skip
def test_the_newest_figure_of_the_same_tag_counts(
    changes: dict[str, Any], table: str, published: tuple[float, float]
) -> None:
    found = verdicts(cell(**changes))["decode_total"]
    assert (found.table, found.published) == (table, published)


def test_of_two_figures_alike_the_newer_counts_whatever_the_order() -> None:
    (old,) = [t for t in tables(result(), catalog())
              if t.measurement.name == "qwen36-35b-v0.23.0-single-stream"]  # fmt: skip
    later = {"name": "later", "date": dt.date(2026, 6, 20)}
    new = replace(old, measurement=old.measurement.model_copy(update=later))
    for order in ((old, new), (new, old)):
        (found,) = compare(result(), order)
        assert {verdict.table for verdict in found.verdicts} == {"later"}


def test_a_load_that_no_card_has_is_not_compared() -> None:
    assert verdicts(cell(concurrency=3)) == {}
    assert verdicts(cell(prompt_tokens=200_000)) == {}
    assert verdicts(gpu={"name": "NVIDIA GeForce RTX 5090"}) == {}
    assert verdicts(models={"someone/else": "a" * 40}) == {}
    assert verdicts(image={"name": "ghcr.io/someone/else:v1"}) == {}


def test_random_tokens_are_held_against_times_of_long_prompts_only() -> None:
    image = {"name": "ghcr.io/aeon-7/vllm-spark-omni-q36:v1.2"}
    found = verdicts(cell(category="random", prompt_tokens=16000), image=image)
    assert set(found) == {"ttft", "prefill"}


def test_another_tag_of_the_same_image_counts_and_says_so() -> None:
    found = verdicts(image={"name": f"{IMAGE}:2026-07-01-v0.24.0"})
    assert "measured on tag 2026-06-18-v0.23.0-dflashfix" in found["decode"].basis
    assert verdicts()["decode"].basis == ""


def test_a_setting_that_ran_otherwise_is_said() -> None:
    found = verdicts(settings={"num_speculative_tokens": 4})
    assert found["decode"].basis == "num_speculative_tokens 11 on the card, 4 here"


def test_a_sampled_run_is_not_held_against_greedy_figures() -> None:
    assert "decode" not in verdicts(cell(sampling_temperature=0.7))


def test_long_contexts_are_held_against_long_contexts() -> None:
    found = verdicts(cell(prompt_tokens=16000, decode=90.8, ttft={"p50": 3.5}))
    assert found["decode"].table == "qwen36-35b-v0.23.0-coding-long-context"
    assert found["ttft"].published == pytest.approx((3.3, 4.1))
    assert found["ttft"].ratio == 1


def test_a_stock_service_is_not_held_against_one_that_drafts() -> None:
    body_only = {"AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4": "c" * 40}
    assert verdicts(models=body_only) == {}
    gemma, drafter = (catalog().models[name].repository
                      for name in ("gemma4-26b-a4b-nvfp4", "gemma4-26b-a4b-dflash"))  # fmt: skip
    stock = {"image": {"name": f"{catalog().images['vllm-openai'].repository}:v0.20.1"}}
    assert verdicts(models={gemma: "c" * 40}, **stock)
    assert verdicts(models={gemma: "c" * 40, drafter: "d" * 40}, **stock) == {}


def test_a_range_says_how_wide_it_is_and_why() -> None:
    found = verdicts(cell(decode=70))["decode"]
    assert found.state == "worse"
    assert found.ratio == pytest.approx(70 / 91.7)
    assert (found.low, found.high) == pytest.approx((91.7 / 1.25, 91.7 * 1.25))
    assert "1.25 times apart" in found.why
    assert "card of vllm-ultimate-dgx-spark" in found.why


def test_a_cards_own_spread_widens_the_range() -> None:
    found = verdicts(
        cell(category="mixed", concurrency=2, decode=69, sampling_temperature=0.7),
        image={"name": "ghcr.io/aeon-7/vllm-spark-omni-q36:v1.2"},
    )["decode"]
    assert found.published == (94.0, 94.0)
    assert found.low == 68.9
    assert found.state == "in range"


@given(st.sampled_from(MEASURES), st.floats(1e-3, 1e4), st.floats(1, 2), st.floats(1e-3, 1e4))
def test_a_verdict_is_sound(base: Any, low: float, width: float, measured: float) -> None:
    table = tables(result(), catalog())[0]
    found = judge(base, measured, Figure(table, low, low * width, low, low * width, None))
    assert found.low <= low
    assert found.high >= low * width
    assert (found.state == "in range") == (found.low <= measured <= found.high)
    if low <= measured <= low * width:
        assert found.ratio == 1
        assert found.state == "in range"
    if found.state == "worse":
        assert (found.ratio < 1) == base.more_is_better
    if found.state == "better":
        assert (found.ratio > 1) == base.more_is_better


def test_slow_and_little_accepted_points_to_the_drafter() -> None:
    slow = cell(decode=50, tpot={"p50": 0.02}, acceptance=0.1)
    found = causes(slow)
    assert found[0] == "drafter-revision"
    assert "acceptance-decayed" in found
    assert "heat-or-power" not in found
    assert "acceptance-decayed" not in causes(slow, settings={"enable_prefix_caching": False})


def test_slow_and_as_much_accepted_points_to_the_machine() -> None:
    slow = cell(decode=50, tpot={"p50": 0.02})
    found = causes(slow)
    assert found[:2] == ["other-process", "memory-pressure"]
    assert "drafter-revision" not in found
    hot = {"name": "NVIDIA GB10", "sm_clock_mhz": 1500, "sm_clock_max_mhz": 2500}
    assert causes(slow, gpu=hot)[0] == "clock-low"
    assert "heat-or-power" not in found
    assert "heat-or-power" in causes(slow, gpu={"name": "NVIDIA GB10"})


def test_a_late_first_token_points_to_the_queue_or_the_prompt() -> None:
    late = {"ttft": {"p50": 30}}
    crowd = cell(concurrency=8, **late)
    old = {"name": "ghcr.io/aeon-7/vllm-spark-omni-q36:v1.2"}
    assert causes(cell(**late))[0] == "not-warm"
    mixed = cell(category="mixed", concurrency=16, sampling_temperature=0.7, **late)
    assert causes(mixed, image=old)[0] == "queue"
    assert causes(crowd) == []  # no card gives a first token for 8 requests of one category
    long = cell(prompt_tokens=16000, decode=90.8, **late)
    assert "prefix-cache-off" in causes(long, settings={})
    assert "prefix-cache-off" not in causes(cell(**late), settings={})
    assert "prefix-cache-off" not in causes(long)


def test_a_known_defect_of_a_tag_is_named_for_that_tag_only() -> None:
    gemma = catalog().models["gemma4-26b-a4b-nvfp4"].repository
    drafter = catalog().models["gemma4-26b-a4b-dflash"].repository
    models = {gemma: "c" * 40, drafter: "d" * 40}
    slow = cell(prompt_tokens=9000, decode=20, acceptance=0.01, acceptance_length=1.1)
    old = causes(slow, models=models, image={"name": f"{IMAGE}:2026-06-11-pr41703"})
    assert "drafter-window-ignored" not in old
    assert "drafter-revision" in old
    broken = result(slow, models=models, image={"name": f"{IMAGE}:2026-06-04-pr44389"})
    against = tables(
        result(models=models, image={"name": f"{IMAGE}:2026-06-11-pr41703"}), catalog()
    )
    (found,) = compare(broken, against, CAUSES)
    assert [cause.id for cause in found.causes][:2] == [
        "prefix-cache-corruption", "drafter-window-ignored",
    ]  # fmt: skip


def test_nothing_is_explained_where_nothing_is_wrong() -> None:
    assert causes() == []


def test_failed_requests_are_named() -> None:
    assert causes(cell(errors=3)) == ["failing-requests"]


def test_causes_have_names_of_their_own_and_tags_that_exist() -> None:
    assert len({cause.id for cause in CAUSES}) == len(CAUSES)
    tags = {tag for image in catalog().images.values() for tag in image.tags}
    assert all(tag in tags for cause in CAUSES for tag in cause.tags)
    assert all(cause.look and cause.source for cause in CAUSES)


def test_every_published_figure_can_be_reached_or_is_known_not_to() -> None:
    """Measures that we take, of rows that name a load: none is lost to a condition of ours."""
    reached = {"decode", "aggregate", "tpot", "ttft", "ttft_p95", "prefill", "acceptance"}
    for row in catalog().measurements["qwen36-35b-omni-concurrency"].rows:
        one = cell(category="mixed", concurrency=row.concurrency, sampling_temperature=0.7)
        image = {"name": "ghcr.io/aeon-7/vllm-spark-omni-q36:v1.2"}
        keys = {m.published for m in MEASURES if m.name in verdicts(one, image=image)}
        expected = {key for key in reached if getattr(row, key) is not None}
        assert keys == expected

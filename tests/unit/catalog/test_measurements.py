"""Published numbers: whole, in range, and the ones that the cards give."""

from __future__ import annotations

from typing import Any

import pytest

from sparkwright.catalog.measurements import Row
from tests.unit.builders import catalog

ALL = catalog().measurements


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_table_is_plausible(name: str) -> None:
    table = ALL[name]
    assert catalog().files["measurement", name].stem == name
    assert table.source.startswith("card of ")
    for row in table.rows:
        numbers = row.model_dump(
            exclude_none=True, exclude={"label", "category", "categories", "errors"}
        )
        assert numbers
        for key, value in numbers.items():
            if isinstance(value, tuple):
                assert value[0] <= value[1], key
            if key in ("acceptance", "acceptance_first"):
                ends = value if isinstance(value, tuple) else (value,)
                assert all(0 <= end <= 1 for end in ends)
        if isinstance(row.decode, float) and isinstance(row.tpot, float) and row.concurrency == 1:
            # One stream: a token every tpot ms, but for medians taken over different things.
            assert row.decode * row.tpot / 1000 == pytest.approx(1, rel=0.1)


def _row(name: str, **wanted: Any) -> Row:
    (row,) = [
        row
        for row in ALL[name].rows
        if all(getattr(row, key) == value for key, value in wanted.items())
    ]
    return row


def test_figures_of_the_cards() -> None:
    assert _row("gemma4-26b-v0.23.0-single-stream", category="extraction-json").decode == 202.4
    assert _row("qwen36-35b-v0.23.0-single-stream", category="math").acceptance == 0.477
    assert _row("qwen36-27b-v0.23.0-single-stream", category="reasoning").tpot == 17.8
    assert _row("qwen36-35b-v0.23.0-concurrency", category="math", concurrency=8).aggregate == 416
    assert _row("gemma4-26b-stock-sweep", category="extraction-json").aggregate_peak == 3674.70
    assert _row("qwen36-35b-omni-concurrency", concurrency=64).ttft_p95 == 11200
    assert _row("qwen35-27b-concurrency-code", concurrency=16).aggregate == 327.9
    assert _row("qwen35-27b-turboquant-context", prompt_tokens=32000).values["off"] == 19.43
    assert _row("qwen36-27b-ab-dflash-xs-body-single", concurrency=1).decode_mean == 24.27
    assert _row("gemma4-26b-production-gates", category="coding").decode == (149, 150)


def test_every_system_with_a_published_table_has_one() -> None:
    bodies = {table.body for table in ALL.values()}
    assert bodies >= {
        "gemma4-26b-a4b-nvfp4",
        "qwen35-27b-dflash-nvfp4",
        "qwen36-27b-aeon-mm-nvfp4-mtp-xs",
        "qwen36-27b-aeon-nvfp4",
        "qwen36-35b-a3b-heretic-nvfp4",
    }


def test_the_fleet_table_of_the_27b_is_of_the_body_that_its_heading_names() -> None:
    """It says "NVFP4 MTP-XS body + DFlash n=12"."""
    table = ALL["qwen36-27b-v0.23.0-single-stream"]
    assert table.body == "qwen36-27b-aeon-mm-nvfp4-mtp-xs"
    assert table.conditions["num_speculative_tokens"] == 12


#: Sampled and greedy rows of the one card that advises sampling.
ADVISED = catalog().models["qwen36-35b-a3b-heretic-nvfp4"].sampling


@pytest.mark.parametrize("recipe", sorted(catalog().recipes))
def test_what_an_alias_sends_is_a_row_of_the_card(recipe: str) -> None:
    for name, alias in catalog().recipes[recipe].aliases.items():
        if "Qwen3.6" not in alias.source or alias.temperature is None:
            continue
        own = alias.temperature, alias.top_p, alias.top_k, alias.presence_penalty
        rows = {(r.temperature, r.top_p, r.top_k, r.presence_penalty) for r in ADVISED}
        assert own in rows, name

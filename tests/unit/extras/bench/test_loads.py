"""The sweep and its prompts: every load is as requested, and every long prompt is unique."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench import loads
from sparkwright.extras.bench.loads import CATEGORIES, FULL, batches, texts


def test_a_sweep_has_every_category_at_every_concurrency_and_the_long_prompts_once() -> None:
    result = batches(*FULL)
    assert [batch.category for batch in result[:6]] == list(CATEGORIES)
    assert {tuple(load.concurrency for load in batch.loads) for batch in result[:6]} == {FULL[1]}
    assert [(batch.category, batch.context) for batch in result[6:]] == [
        ("coding", 2000), ("coding", 16000), ("coding", 33000),
    ]  # fmt: skip
    assert batches(("prose",), (1,), (2000,))[1].category == "prose"
    assert [batch.category for batch in batches(("prose", "coding"), (1,), (0,))] == [
        "coding", "prose",
    ]  # fmt: skip


@given(st.sampled_from(CATEGORIES), st.integers(1, 256))
def test_every_prompt_is_sent_equally_often(category: str, concurrency: int) -> None:
    (batch,) = batches((category,), (concurrency, concurrency), ())
    (load,) = batch.loads
    assert load.requests % len(texts(batch.category)["prompts"]) == 0
    assert load.requests >= concurrency * 2
    assert load.warm_up == concurrency


@given(st.integers(1000, 200_000), st.floats(2, 6))
def test_a_long_prompt_has_the_requested_length_and_is_unique(
    tokens: int, characters: float
) -> None:
    item, other = (loads.long_prompt("coding", tokens, seed, characters) for seed in ("a-1", "a-2"))
    assert len(item) / characters == pytest.approx(tokens, rel=0.02)
    # vLLM's prefix cache has blocks of 16 tokens: no two blocks are alike.
    assert item[:25] != other[:25]
    assert item == loads.long_prompt("coding", tokens, "a-1", characters)
    assert item.endswith(texts("coding")["context"])

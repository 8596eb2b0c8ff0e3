"""The sweep and its prompts: every load as requested, and no two requests alike by chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench import loads
from sparkwright.extras.bench.loads import CATEGORIES, FULL, batches, read_categories, texts
from sparkwright.findings.user_error import UserError


def test_a_sweep_has_every_category_at_every_concurrency_and_the_long_prompts_once() -> None:
    result = batches(FULL, quick=False)
    assert [batch.category for batch in result[:6]] == list(CATEGORIES)
    assert {tuple(load.concurrency for load in batch.loads) for batch in result[:6]} == {
        FULL.concurrency
    }
    assert [(batch.category, batch.context) for batch in result[6:]] == [
        ("coding", 2000), ("coding", 16000), ("coding", 33000),
    ]  # fmt: skip
    assert batches(loads.Sweep(("prose",), (1,), (2000,)), quick=False)[1].category == "prose"


@given(st.sampled_from(CATEGORIES), st.integers(1, 256), st.booleans())
def test_every_prompt_is_sent_equally_often(category: str, concurrency: int, quick: bool) -> None:
    (batch,) = batches(loads.Sweep(read_categories(category), (concurrency,), ()), quick=quick)
    (load,) = batch.loads
    assert load.requests % len(texts(batch.category)["prompts"]) == 0
    assert load.requests >= concurrency * (1 if quick else 2)
    assert load.warm_up == concurrency


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1,2,64", (1, 2, 64)), ("8, 1,8", (1, 8)), ("2k,16K", (2000, 16000)), ("none", ())],
)
def test_lists_of_loads_are_parsed(text: str, numbers: tuple[int, ...]) -> None:
    assert loads.read_numbers("--context", text, most=10**6) == numbers


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "2m", "1,,2", "9999999"])
def test_an_invalid_list_is_reported(text: str) -> None:
    with pytest.raises(UserError, match="is not a number from 1 to 1024"):
        loads.read_numbers("--concurrency", text)


def test_a_category_without_prompts_is_reported() -> None:
    assert read_categories("prose, coding,prose") == ("coding", "prose")
    with pytest.raises(UserError, match="did you mean 'coding'"):
        read_categories("codeing")
    with pytest.raises(UserError, match="known: coding"):
        read_categories(" , ")


@given(st.integers(1000, 200_000), st.floats(2, 6))
def test_a_long_prompt_is_as_long_as_asked_and_like_no_other(
    tokens: int, characters: float
) -> None:
    item, other = (loads.long_prompt("coding", tokens, seed, characters) for seed in ("a-1", "a-2"))
    assert len(item) / characters == pytest.approx(tokens, rel=0.02)
    # vLLM's prefix cache knows blocks of 16 tokens: no two blocks are alike.
    assert item[:25] != other[:25]
    assert item == loads.long_prompt("coding", tokens, "a-1", characters)
    assert item.endswith(texts("coding")["context"])

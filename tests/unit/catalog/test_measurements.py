"""Published numbers: complete, in range, and equal to the cards' numbers."""

import pytest

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
            # One stream yields a token every tpot ms, except for medians over different values.
            assert row.decode * row.tpot / 1000 == pytest.approx(1, rel=0.1)


#: Sampled and greedy rows of the one card that advises sampling.
ADVISED = catalog().models["qwen36-35b-a3b-heretic-nvfp4"].sampling


def test_the_sampling_of_an_alias_is_a_row_of_the_card() -> None:
    aliases = [pair for recipe in catalog().recipes.values() for pair in recipe.aliases.items()]
    for name, alias in aliases:
        if "Qwen3.6" not in alias.source or alias.temperature is None:
            continue
        own = alias.temperature, alias.top_p, alias.top_k, alias.presence_penalty
        rows = {(r.temperature, r.top_p, r.top_k, r.presence_penalty) for r in ADVISED}
        assert own in rows, name

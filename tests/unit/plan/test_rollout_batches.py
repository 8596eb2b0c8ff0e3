"""Order of a roll-out: canaries first, then batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparkwright.config.settings import RolloutSettings
from sparkwright.plan.rollout import batches
from tests.tables import Tables

cases = Tables(__file__)


@cases("settings", "expected")
def test_hosts_switch_in_batches(settings: dict[str, object], expected: list[list[str]]) -> None:
    assert batches([*"abcd"], RolloutSettings.model_validate(settings)) == expected


@cases("mistake")
def test_an_invalid_rollout_is_refused(mistake: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RolloutSettings.model_validate(mistake)


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=40),
    st.integers(0, 5),
    st.one_of(st.integers(1, 9), st.integers(1, 100).map(lambda share: f"{share}%")),
)
def test_every_host_is_in_one_batch(hosts: list[int], canaries: int, batch: int | str) -> None:
    names = [f"h{number}" for number in hosts]
    settings = RolloutSettings.model_validate({"canaries": canaries, "batch": batch})
    turns = batches(names, settings)
    assert sorted(name for turn in turns for name in turn) == sorted(names)
    assert all(turns)

"""Sources of downloads among peers."""

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.plan.peers import FAN_OUT, MOST_PEERS, peers


def test_leeches_are_spread_over_the_seeds() -> None:
    result = peers(["x", "y"], ["a", "b"])
    assert (result["x"][0], result["y"][0]) == ("a", "b")


@given(
    st.lists(st.integers(0, 200), unique=True, max_size=60),
    st.lists(st.integers(300, 310), unique=True, max_size=4),
    st.integers(0, 300),
)
def test_every_host_is_reached_and_no_seed_serves_too_many(
    wanting: list[int], holding: list[int], turn: int
) -> None:
    wants, holds = [f"h{n}" for n in wanting], [f"h{n}" for n in holding]
    result = peers(wants, holds, turn)
    assert set(result) == set(wants)
    outside = [name for name, others in result.items() if not others]
    assert len(outside) == (1 if wants and not holds else 0)
    first = [others[0] for others in result.values() if others]
    assert all(first.count(name) <= FAN_OUT for name in first)
    for name, others in result.items():
        assert name not in others
        assert len(others) <= MOST_PEERS
    # The chain of first sources ends at a host that has the file, or downloads it from outside.
    for name in wants:
        at, steps = name, 0
        while result.get(at):
            at, steps = result[at][0], steps + 1
            assert steps <= len(wants)
        assert at in holds or at in outside

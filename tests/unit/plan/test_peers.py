"""Who takes from whom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.plan.peers import FAN_OUT, MOST_PEERS, peers


def test_first_fetches_and_the_others_take_from_it() -> None:
    assert peers(["a", "b", "c"], []) == {"a": [], "b": ["a"], "c": ["a", "b"]}


def test_whoever_has_it_gives_it() -> None:
    assert peers(["new"], ["a", "b"]) == {"new": ["a", "b"]}


def test_seeds_share_the_leeches() -> None:
    found = peers(["x", "y"], ["a", "b"])
    assert (found["x"][0], found["y"][0]) == ("a", "b")


def test_turns_make_other_hosts_the_first() -> None:
    assert peers(["a", "b", "c"], [], turn=1)["b"] == []


@given(
    st.lists(st.integers(0, 200), unique=True, max_size=60),
    st.lists(st.integers(300, 310), unique=True, max_size=4),
    st.integers(0, 300),
)
def test_everyone_is_reached_and_nobody_gives_too_much(
    wanting: list[int], holding: list[int], turn: int
) -> None:
    wants, holds = [f"h{n}" for n in wanting], [f"h{n}" for n in holding]
    found = peers(wants, holds, turn)
    assert set(found) == set(wants)
    outside = [name for name, others in found.items() if not others]
    assert len(outside) == (1 if wants and not holds else 0)
    first = [others[0] for others in found.values() if others]
    assert all(first.count(name) <= FAN_OUT for name in first)
    for name, others in found.items():
        assert name not in others
        assert len(others) <= MOST_PEERS
    # Following the first of each leads to someone who has it, or fetches it.
    for name in wants:
        at, steps = name, 0
        while found.get(at):
            at, steps = found[at][0], steps + 1
            assert steps <= len(wants)
        assert at in holds or at in outside

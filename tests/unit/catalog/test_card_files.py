"""What is kept of the cards here is what the cards say, where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cards.read import HERE, all_tables, compared, fixtures, sections, texts
from tests.unit.builders import ROOT


def _cards() -> Path:
    """The directory with the cards: SPARKWRIGHT_CARDS, or shared/seeds beside the checkout."""
    named = os.environ.get("SPARKWRIGHT_CARDS")
    places = [Path(named)] if named else [one / "shared/seeds" for one in ROOT.parents]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        pytest.skip("the cards are not here: SPARKWRIGHT_CARDS names their directory")
    return found


@pytest.mark.parametrize("name", ["figures.yaml", "tables.yaml"])
def test_the_figures_and_tables_kept_here_are_the_cards(name: str) -> None:
    cards = fixtures(_cards())
    assert (HERE / name).read_text(encoding="utf-8") == cards[name], (
        "run: python -m tests.cards.read DIRECTORY"
    )


def test_every_table_of_the_cards_is_compared_or_declared() -> None:
    given = [(one.card, one.section, one.number) for one in all_tables(_cards())]
    declared = [tuple(one["at"]) for one in compared()["tables"]]
    assert sorted(given) == sorted(declared)


def test_rows_without_columns_are_the_cards() -> None:
    cards = texts(_cards())
    for one in compared()["squashed"]:
        card, section = one["at"]
        lines = sections(card, cards[card])[section].splitlines()
        assert set(one["rows"]) <= set(lines)

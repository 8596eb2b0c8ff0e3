"""Copies of card texts in this repository equal the cards, if the cards are available."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cards.differences import COMMANDS
from tests.cards.read import HERE, all_tables, compared, fixtures, sections, texts
from tests.unit.builders import ROOT


def _cards() -> Path:
    """The directory with the cards: SPARKWRIGHT_CARDS, or shared/seeds beside the checkout."""
    named = os.environ.get("SPARKWRIGHT_CARDS")
    places = [Path(named)] if named else [parent / "shared/seeds" for parent in ROOT.parents]
    path = next((folder for folder in places if folder.is_dir()), None)
    if path is None:
        pytest.skip("the cards are not here: SPARKWRIGHT_CARDS names their directory")
    return path


@pytest.mark.parametrize("name", ["figures.yaml", "tables.yaml"])
def test_the_figures_and_tables_kept_here_equal_the_figures_on_the_cards(name: str) -> None:
    cards = fixtures(_cards())
    assert (HERE / name).read_text(encoding="utf-8") == cards[name], (
        "run: python -m tests.cards.read DIRECTORY"
    )


def test_every_table_of_the_cards_is_compared_or_declared() -> None:
    given = [(table.card, table.section, table.number) for table in all_tables(_cards())]
    declared = [tuple(item["at"]) for item in compared()["tables"]]
    assert sorted(given) == sorted(declared)


def test_rows_without_columns_equal_the_rows_on_the_cards() -> None:
    cards = texts(_cards())
    for item in compared()["squashed"]:
        card, section = item["at"]
        assert set(item["rows"]) <= set(sections(card, cards[card])[section].splitlines())


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r" #.*", "", text).replace("\\\n", " "))


@pytest.mark.parametrize(
    "entry",
    [
        command
        for command in COMMANDS
        if command["source"].startswith("card of") and "as" not in command
    ],
    ids=lambda item: item["recipe"],
)
def test_a_command_equals_the_card_word_for_word(entry: dict[str, Any]) -> None:
    cards = texts(_cards())
    text = next(text for card, text in cards.items() if card in entry["source"])
    if "compose" in entry:
        items = [line.removeprefix("- ").strip("\"'") for line in text.splitlines()]
        for key in ("command", "environment", "volumes"):
            arguments = "\n".join(entry["compose"][key])
            assert f"\n{arguments}\n" in "\n".join(items)
    elif "put_together" not in entry:
        assert _one_line(entry["run"]) in _one_line(text)

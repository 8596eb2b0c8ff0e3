"""Text in a terminal's width: broken at spaces, aligned, never within a word."""

import pytest

from sparkwright.text.screen import fitted
from sparkwright.text.table import columns


def test_a_long_line_continues_with_its_indentation() -> None:
    text = "    observed: more than 32 sequences at a time with a drafter of DFlash"
    assert fitted(text, 50).split("\n") == [
        "    observed: more than 32 sequences at a time",
        "              with a drafter of DFlash",
    ]
    assert fitted("  - one two three four five six seven eight nine", 40).split("\n") == [
        "  - one two three four five six seven",
        "    eight nine",
    ]


def test_no_word_is_broken_and_a_short_line_stays_unchanged() -> None:
    word = "x" * 60
    assert fitted(f"a {word} b", 40).split("\n") == ["a", f"  {word}", "  b"]
    assert fitted("a  b   c", 40) == "a  b   c"


def test_colours_do_not_count_as_width() -> None:
    line = "\x1b[31m" + "red " * 9 + "\x1b[0m"
    assert fitted(line, 40) == line


def test_piped_text_stays_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert fitted("word " * 100) == "word " * 100


@pytest.mark.parametrize("given", ["100", "0", "many", ""])
def test_the_variable_columns_overrides_the_terminals_width(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", given)
    assert (max(map(len, fitted("word " * 100).split("\n"))) <= 100) == (given == "100")


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("HOST", "DETAIL", "TAG"), ("spark-1", "more than one line", "2026-07-01")]
    monkeypatch.setenv("COLUMNS", "40")
    assert columns(rows) == [
        "HOST     DETAIL              TAG",
        "spark-1  more than one line  2026-07-01",
    ]
    rows[1] = ("spark-1", "more than one line holds", "2026-07-01")
    assert columns(rows) == [
        "HOST     DETAIL               TAG",
        "spark-1  more than one line   2026-07-01",
        "         holds",
    ]
    monkeypatch.delenv("COLUMNS")
    long = [("HOST", "DETAIL"), ("spark-1", "word " * 60)]
    assert columns(long)[1] == "spark-1  " + ("word " * 60).strip()
    # rich, used for text that is not ASCII, lays the same rows out alike.
    assert columns([*rows, ("ä", "", "")])[:-1] == columns(rows)

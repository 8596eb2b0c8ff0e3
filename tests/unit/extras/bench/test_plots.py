"""Plots: proportions, what they say to who can't see them, and nothing that breaks the markup."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.extras.bench.section import Bar, Line, bars, lines
from sparkwright.text.short import number

#: Any text that XML can hold at all.
_labels = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"),
                 max_size=12)  # fmt: skip
_figures = st.floats(0, 1e9) | st.sampled_from([5e-324, 1e-12])
_bars = st.tuples(
    _labels, _figures, st.none() | st.tuples(_figures, _figures).map(lambda p: (min(p), max(p)))
)
_lines = st.tuples(_labels, st.lists(st.tuples(st.floats(1, 1e6), _figures), max_size=5))


def _widths(svg: ET.Element, kind: str) -> list[float]:
    return [float(item.attrib["width"]) for item in svg.iter("rect") if item.get("class") == kind]


def test_bars_are_as_long_as_their_figures() -> None:
    svg = ET.fromstring(bars("Decode", "tokens/s", [("a", 50, (100, 100)), ("b", 25, None)]))
    assert _widths(svg, "card")[0] == pytest.approx(2 * _widths(svg, "own")[0], abs=0.1)
    assert _widths(svg, "own")[0] == pytest.approx(2 * _widths(svg, "own")[1], abs=0.1)


def test_a_plot_says_all_its_figures_in_words() -> None:
    svg = ET.fromstring(bars("Decode", "tokens/s", [("coding", 50, (90, 100)), ("math", 25, None)]))
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == (
        "Decode in tokens/s: coding 50, card 90 to 100; math 25, no figure on the card"
    )
    svg = ET.fromstring(lines("TTFT", "requests", "s", [("coding", ((1, 0.1), (8, 0.4)))]))
    assert svg.get("aria-label") == "TTFT in s over requests. coding: 1: 0.1, 8: 0.4"


def test_every_line_has_a_marker_of_its_own() -> None:
    series = [(str(n), ((1, 1), (2, n))) for n in range(7)]
    svg = ET.fromstring(lines("t", "x", "u", series))
    legend = [group for group in svg.findall("g") if group.get("transform")]
    assert len({ET.tostring(group[0]) for group in legend}) == 7


def test_nothing_is_drawn_of_nothing() -> None:
    assert bars("t", "u", []) == ""
    assert lines("t", "x", "u", [("a", ())]) == ""


@given(st.lists(_bars, min_size=1, max_size=5))
def test_bars_stay_in_their_drawing_whatever_they_are_given(rows: list[Bar]) -> None:
    svg = ET.fromstring(bars("t<", "u&", rows))
    width = float(svg.attrib["viewBox"].split()[2])
    drawn = [*_widths(svg, "own"), *_widths(svg, "card")]
    assert all(0 < item <= width for item in drawn)
    labels = [item.text or "" for item in svg.iter("text") if item.get("class") == "label"]
    assert labels == [label for label, *_ in rows]


@given(st.lists(_lines, min_size=1, max_size=9))
def test_lines_stay_in_their_drawing_whatever_they_are_given(series: list[Line]) -> None:
    drawing = lines('t"', "x<", "u&", series)
    if not any(points for _, points in series):
        assert drawing == ""
        return
    svg = ET.fromstring(drawing)
    *_, width, height = (float(word) for word in svg.attrib["viewBox"].split())
    for path in svg.iter("path"):
        if path.get("class") == "line":
            ends = [float(word) for word in re.findall(r"-?[\d.]+", path.attrib["d"])]
            assert all(map(math.isfinite, ends))
            assert all(0 <= x <= width for x in ends[::2])
            assert all(0 <= y <= height for y in ends[1::2])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234.4, "1234"), (91.74, "91.7"), (0.0884, "0.0884"), (100, "100"), (4.60, "4.6"),
     (1e-9, "0"), (float("nan"), "-"), (120, "120"), (99.96, "100")],
)  # fmt: skip
def test_numbers_have_the_digits_that_matter(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(1e-4, 1e9))
def test_numbers_are_within_half_a_percent(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=0.0051)

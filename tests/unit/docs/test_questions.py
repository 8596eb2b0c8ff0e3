"""Questions of a user's first month are answered by a section that README leads to."""

import re
from functools import cache
from pathlib import PurePosixPath

from tests.tables import Tables
from tests.unit.docs.markdown import NAMES, read

cases = Tables(__file__)


@cache
def _within_two_clicks() -> set[str]:
    pages = {"README.md"}
    for _ in range(2):
        pages |= {
            str(PurePosixPath(page).parent / target.partition("#")[0])
            for page in pages & set(NAMES)
            for target in read(page).links
        }
    return pages


@cases("question", "page", "heading", "answer")
def test_every_answer_is_two_clicks_away_from_the_readme(
    question: str, page: str, heading: str, answer: str
) -> None:
    assert page in _within_two_clicks(), question
    parts = re.split(r"^(#+) (.*)$", read(page).text, flags=re.M)
    sections = list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))
    titles = [title.strip("`") for _, title, _ in sections]
    assert heading in titles, f"{question} {page} has no section {heading!r}"
    start = titles.index(heading)
    level, _, text = sections[start]
    for deeper, _, below in sections[start + 1 :]:  # a section includes its subsections
        if len(deeper) <= len(level):
            break
        text += below
    assert answer in text, f"{question} {page}, {heading}: nothing of {answer!r}"


def test_there_are_twenty_questions() -> None:
    assert len(cases.data["test_every_answer_is_two_clicks_away_from_the_readme"]) >= 20

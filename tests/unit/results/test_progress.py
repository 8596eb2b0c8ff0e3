"""Each host has one line for its downloads, and one line for the boot of its engine."""

from typing import Any

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.lib.records import decode
from sparkwright.host.release import Phase
from sparkwright.results.progress import line, phases, together
from tests.tables import Tables

cases = Tables(__file__)


@cases("jobs", "ended", "text")
def test_fetches_of_a_host_share_one_line(jobs: Any, ended: list[str], text: str) -> None:
    decoded = decode(dict[str, FetchProgress | None], jobs)
    assert line(together(decoded, frozenset(ended))) == text


@cases("seen", "text")
def test_boots_of_a_host_share_one_line(seen: Any, text: str) -> None:
    assert phases(decode(dict[str, Phase], seen), 100.0) == text

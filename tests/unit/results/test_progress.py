"""One line per host while it fetches, and while its engine boots."""

import pytest

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.host.release import Phase
from sparkwright.results.progress import line, phases, together

GB = 10**9


@pytest.mark.parametrize(
    ("jobs", "ended", "text"),
    [
        (
            {
                "body": FetchProgress(
                    bytes_done=6 * GB, bytes_total=22 * GB, rate=80_000_000, source="a neighbour"
                ),
                "image": FetchProgress(
                    bytes_done=3 * GB, bytes_total=9 * GB, rate=20_000_000, source="the internet"
                ),
            },
            (),
            "9.00 of 31.00 GB at 100 MB/s from a neighbour and the internet, 4 min left:"
            " body 27 %, image 33 %",
        ),
        (
            {
                "body": FetchProgress("verifying", 10, 10, source="the disk"),
                "image": FetchProgress("done", 5, 5, rate=100, source="the internet"),
                "drafter": None,
            },
            ("image",),
            "0.00 of 0.00 GB at 0 MB/s from the disk: body 100 % verifying, image done,"
            " drafter starting",
        ),
        ({"x": None}, (), "x starting"),
    ],
    ids=["sums, sources and time left", "other states", "nothing reported"],
)
def test_fetches_of_a_host_are_one_line(
    jobs: dict[str, FetchProgress | None], ended: tuple[str, ...], text: str
) -> None:
    assert line(together(jobs, frozenset(ended))) == text


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (
            {
                "chat": Phase("compiling", 75.0, 40.0),
                "coder": Phase("starting", 100.0, None, 900.0),
            },
            "chat: compiling for 25 s (40 s last time), "
            "coder: starting for 0 s (all of it at most 15 min)",
        ),
        ({"": Phase("watching", 65.0, 75.0)}, "watching for another 40 s"),
        ({"": Phase("watching", 5.0, 75.0)}, "watching for another 0 s"),
        ({}, ""),
    ],
)
def test_boots_of_a_host_are_one_line(seen: dict[str, Phase], text: str) -> None:
    assert phases(seen, 100.0) == text

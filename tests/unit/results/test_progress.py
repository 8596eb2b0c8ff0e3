"""One line per host while it fetches."""

import pytest

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.results.progress import line

GB = 10**9


@pytest.mark.parametrize(
    ("jobs", "ended", "text"),
    [
        (
            {
                "body": FetchProgress(bytes_done=6 * GB, bytes_total=22 * GB, rate=80_000_000),
                "image": FetchProgress(bytes_done=3 * GB, bytes_total=9 * GB, rate=20_000_000),
            },
            (),
            "9.00 of 31.00 GB at 100 MB/s, 4 min left: body 27 %, image 33 %",
        ),
        (
            {
                "body": FetchProgress("verifying", bytes_done=10, bytes_total=10),
                "image": FetchProgress("done", bytes_done=5, bytes_total=5),
                "drafter": None,
            },
            ("image",),
            "0.00 of 0.00 GB at 0 MB/s: body 100 % verifying, image done, drafter starting",
        ),
        ({"x": None}, (), "x starting"),
    ],
    ids=["sums and time left", "other states", "nothing reported"],
)
def test_a_line_of_fetches(
    jobs: dict[str, FetchProgress | None], ended: tuple[str, ...], text: str
) -> None:
    assert line(jobs, frozenset(ended)) == text

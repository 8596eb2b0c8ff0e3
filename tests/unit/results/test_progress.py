"""One line per host while it fetches."""

from __future__ import annotations

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.results.progress import Job, line


def test_sums_bytes_and_rates_and_says_how_long() -> None:
    jobs = [
        Job("body", "running", 6_000_000_000, 22_000_000_000, 80e6),
        Job("image", "running", 3_000_000_000, 9_000_000_000, 20e6),
    ]
    assert line(jobs) == (
        "9.00 of 31.00 GB at 100 MB/s, 4 min left: body 27 %, image 33 %"
    )  # 22 GB at 100 MB/s


def test_says_what_is_not_simply_fetched() -> None:
    jobs = [
        Job("body", "verifying", 10, 10, 0.0),
        Job("image", "done", 5, 5, 0.0, running=False),
        Job("drafter", "starting"),
    ]
    assert line(jobs) == (
        "0.00 of 0.00 GB at 0 MB/s: body 100 % verifying, image done, drafter starting"
    )


def test_reads_what_a_job_reports_and_survives_one_that_reports_nothing() -> None:
    progress = FetchProgress("running", bytes_done=1, bytes_total=2, rate=3)
    assert Job.of("x", progress) == Job("x", "running", 1, 2, 3.0)
    assert Job.of("x", None) == Job("x", "starting")
    assert not Job.of("x", None, running=False).running
    assert line([Job("x", "starting")]) == "x starting"

"""The front of the page lists faults first, with host and age, and then all other entries."""

import datetime as dt
from dataclasses import replace
from typing import Any

from lab import example_report
from sparkwright.checks.configuration.parts import Memory, Part
from sparkwright.extras.bench.results import Result
from sparkwright.extras.dashboard.contents import LastRun, Page, Status
from sparkwright.extras.dashboard.front import ago, groups, line
from sparkwright.extras.dashboard.render import html, plain
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.findings.user_error import mistake
from tests.tables import Tables
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import cell, result
from tests.unit.extras.dashboard.pages import page_of

cases = Tables(__file__)

NOON = dt.datetime(2026, 7, 8, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
ROW = example_report.rows(1)[0]
WARNING = Finding("drift", Severity.WARNING, Subject("spark-1", "qwen36"), "changed by hand")


def page(*hosts: str, now: dt.datetime = NOON, **changes: Any) -> Page:
    """The page of these hosts, which are healthy except for the changes."""
    rows = changes.pop("rows", tuple(replace(ROW, host=host) for host in hosts))
    last = LastRun(now, False, rows)
    return page_of(made=now, catalog=catalog(), **{"last_run": last, **changes})


def slower(host: str) -> Result:
    """A result of two days ago with one figure below the card's."""
    return result(cell(decode=50, tpot=None, prefill=None), host=host, when=NOON - 2 * DAY)


def lines_of(made: Page) -> list[str]:
    """Every finding's line."""
    return [line(finding, made.made) for finding in made.findings]


def test_a_slow_host_is_the_first_line() -> None:
    made = page("spark-1", "spark-2", results={("spark-2", "qwen36"): slower("spark-2")})
    assert made.front == "spark-2: qwen36: 1 of 4 figures are worse than the card's"
    assert {row.host: row.well for row in made.fleet} == {"spark-1": True, "spark-2": False}
    assert not made.well
    arguments = html(made)
    assert arguments.index(made.front.replace("'", "&#39;")) < arguments.index("<h2")
    assert arguments.count('class="good"') == arguments.count("✓")
    assert plain(made)["front"] == made.front


def test_equal_findings_share_one_line_with_a_count_and_the_hosts() -> None:
    names = [f"spark-{number}" for number in range(1, 9)]
    made = page(*names, "spark-9", results={(name, "qwen36"): slower(name) for name in names})
    assert lines_of(made) == [
        "8 hosts (spark-1, spark-2, spark-3, spark-4, spark-5 and 3 more): qwen36: 1 of 4 figures "
        "are worse than the card's"
    ]
    assert len(list(groups(made.fleet))) == 2


def test_a_stopped_service_comes_before_a_slow_service_and_a_broken_file_last() -> None:
    bare = (replace(ROW.services[0], smoke=None),)
    down = replace(ROW, host="rtx-1", refused="no answer\nat all", changes=(), services=bare)
    wedge = Finding("wedge", Severity.ERROR, Subject("spark-1", "qwen36"), "no token for 9 min")
    made = page(
        rows=(down, replace(ROW, host="spark-2")),
        results={("spark-2", "qwen36"): slower("spark-2")},
        reported=Status(NOON, findings=(WARNING, wedge)),
        problems=(mistake("bench/x.json", "broken", "correct it"),),
        memory={"spark-2": Memory(100.0, True, (Part("#", "weights", 104.0),))},
    )
    assert lines_of(made) == [
        "rtx-1: qwen36: was left alone: no answer at all",
        "spark-1: qwen36: wedge: no token for 9 min",
        "spark-2: the plan needs 4.0 GiB more memory than the host has",
        "spark-2: qwen36: 1 of 4 figures are worse than the card's",
        "spark-1: qwen36: drift: changed by hand",
        "bench/x.json can't be read: broken",
    ]
    assert made.front == f"{lines_of(made)[0]}; and 5 findings more"


def test_old_data_is_marked_with_its_age() -> None:
    later = NOON + 9 * DAY
    last = LastRun(NOON, False, (replace(ROW, refused="no answer"),))
    findings = {("spark-2", "qwen36"): slower("spark-2")}
    made = page("x", now=later, last_run=last, results=findings)
    assert lines_of(made)[0].endswith("no answer [old: 9 days]")
    assert lines_of(made)[1].endswith("card's [old: 11 days]")
    arguments = html(made)
    assert "2026-07-08 12:00 UTC, old: 9 days." in arguments
    assert "[old: 11 days]</b>" in arguments
    assert "old:" not in html(page("spark-1", results=findings))


def test_the_absence_of_findings_is_shown_with_its_time() -> None:
    well = page("spark-1", "spark-2", now=NOON)
    assert well.front == (
        "2 services of 2 hosts: as planned, and no service is slower than its card, as of just now"
    )
    assert well.well
    missing = page("spark-1", planned={"spark-1": ["qwen36"], "spark-2": ["qwen36"]})
    assert missing.front == "spark-2: qwen36: is not deployed"


def test_a_warning_alone_is_shown_without_failure() -> None:
    made = page("spark-1", reported=Status(NOON, findings=(WARNING,)))
    assert made.front == "spark-1: qwen36: drift: changed by hand"
    assert made.well
    assert made.fleet[0].well


def test_times_are_in_ms_and_rates_in_tokens() -> None:
    findings = {("spark-1", "qwen36"): result()}
    made = page("spark-1", results=findings)
    assert "91.7 tokens/s, first token 88 ms" in html(made)


@cases("seconds", "message")
def test_ages_are_shown_in_their_largest_unit(seconds: float, message: str) -> None:
    assert ago(NOON - dt.timedelta(seconds=seconds), NOON) == message

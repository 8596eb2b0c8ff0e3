"""Faults come first, with host, time and the preceding change; then the rest."""

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


def run(decode: float, day: int, **changes: Any) -> Result:
    """A run some days before noon. Every measure follows the rate."""
    rate = {"decode": decode, "decode_total": decode}
    cells = [cell(**rate, concurrency=number, tpot=None, prefill=None) for number in (1, 2)]
    return result(*cells, when=NOON - day * DAY, **changes)


def page(*hosts: str, now: dt.datetime = NOON, **changes: Any) -> Page:
    """The page of these hosts, which are healthy but for the changes."""
    rows = changes.pop("rows", tuple(replace(ROW, host=host) for host in hosts))
    last = LastRun(now, False, rows)
    return page_of(made=now, catalog=catalog(), **{"last_run": last, **changes})


def slower(host: str, share: float, driver: str = "581.10") -> list[Result]:
    """Four days at 100 tokens/s, then a new driver, two days ago, at less."""
    gpu = {"name": "NVIDIA GB10", "driver": driver}
    past = [run(100, day, host=host) for day in (6, 5, 4, 3)]
    slow = [run(100 * (1 - share), day, host=host, gpu=gpu) for day in (2, 1)]
    return [*past, *slow]


def lines_of(made: Page) -> list[str]:
    """Every finding's line."""
    return [line(finding, made.made) for finding in made.findings]


def test_a_slow_host_is_the_first_line_with_the_change_and_its_age() -> None:
    made = page("spark-1", "spark-2", results={("spark-2", "qwen36"): slower("spark-2", 0.31)})
    assert made.front == (
        "spark-2: qwen36: answers 31 % slower since the driver changed 580.95.05 → 581.10 "
        "(2 days ago)"
    )
    assert {row.host: row.well for row in made.fleet} == {"spark-1": True, "spark-2": False}
    assert not made.well
    arguments = html(made)
    assert arguments.index(made.front) < arguments.index("<h2")
    assert arguments.count('class="good"') == arguments.count("✓")
    assert plain(made)["front"] == made.front


def test_equal_findings_are_one_line_with_a_count_and_the_hosts() -> None:
    names = [f"spark-{number}" for number in range(1, 9)]
    results = {
        (name, "qwen36"): slower(name, 0.30 + number / 100) for number, name in enumerate(names)
    }
    made = page(*names, "spark-9", results=results)
    assert lines_of(made) == [
        "8 hosts (spark-1, spark-2, spark-3, spark-4, spark-5 and 3 more): qwen36: answers 30 to "
        "37 % slower since the driver changed 580.95.05 → 581.10 (2 days ago)"
    ]
    assert len(list(groups(made.fleet))) == 2


def test_another_change_is_another_finding() -> None:
    results = {
        ("a", "qwen36"): slower("a", 0.3, "581.10"), ("b", "qwen36"): slower("b", 0.4, "581.20")
    }  # fmt: skip
    made = page("a", "b", results=results)
    assert [arguments.partition(":")[0] for arguments in lines_of(made)] == ["b", "a"]


def test_a_stopped_service_comes_before_a_slow_one_and_a_broken_file_last() -> None:
    bare = (replace(ROW.services[0], smoke=None),)
    down = replace(ROW, host="rtx-1", refused="no answer\nat all", changes=(), services=bare)
    wedge = Finding("wedge", Severity.ERROR, Subject("spark-1", "qwen36"), "no token for 9 min")
    made = page(
        rows=(down, replace(ROW, host="spark-2")),
        results={("spark-2", "qwen36"): slower("spark-2", 0.3)},
        reported=Status(NOON, findings=(WARNING, wedge)),
        problems=(mistake("bench/x.json", "broken", "correct it"),),
        memory={"spark-2": Memory(100.0, True, (Part("#", "weights", 104.0),))},
    )
    assert lines_of(made) == [
        "rtx-1: qwen36: was left alone: no answer at all",
        "spark-1: qwen36: wedge: no token for 9 min",
        "spark-2: qwen36: answers 30 % slower since the driver changed 580.95.05 → 581.10 "
        "(2 days ago)",
        "spark-2: the plan needs 4.0 GiB more memory than there is",
        "spark-1: qwen36: drift: changed by hand",
        "bench/x.json can't be read: broken",
    ]
    assert made.front == f"{lines_of(made)[0]}; and 5 findings more"


def test_old_data_is_marked_with_its_age() -> None:
    later = NOON + 9 * DAY
    last = LastRun(NOON, False, (replace(ROW, refused="no answer"),))
    findings = {("spark-2", "qwen36"): slower("spark-2", 0.3)}
    made = page("x", now=later, last_run=last, results=findings)
    assert lines_of(made)[0].endswith("no answer [old: 9 days]")
    assert lines_of(made)[1].endswith("(11 days ago) [old: 10 days]")
    arguments = html(made)
    assert "2026-07-08 12:00 UTC, old: 9 days." in arguments
    assert "[old: 10 days]</b>" in arguments
    assert "old:" not in html(page("spark-1", results=findings))


def test_the_absence_of_findings_is_shown_with_its_time() -> None:
    well = page("spark-1", "spark-2", now=NOON)
    assert well.front == (
        "2 services of 2 hosts: as planned, and none slower than usual, as of just now"
    )
    assert well.well
    missing = page("spark-1", planned={"spark-1": ["qwen36"], "spark-2": ["qwen36"]})
    assert missing.front == "spark-2: qwen36: is not deployed"


def test_a_warning_alone_is_shown_and_is_no_failure() -> None:
    made = page("spark-1", reported=Status(NOON, findings=(WARNING,)))
    assert made.front == "spark-1: qwen36: drift: changed by hand"
    assert made.well
    assert made.fleet[0].well


def test_times_are_in_ms_and_rates_in_tokens() -> None:
    findings = {("spark-1", "qwen36"): [result()]}
    made = page("spark-1", results=findings)
    assert "91.7 tokens/s, first token 88 ms" in html(made)
    late = [run(100, day) for day in (6, 5, 4, 3)]
    cells = [item.model_copy(update={"measures": item.measures | {"ttft": 0.5}})
             for item in late[0].cells]  # fmt: skip
    late += [late[0].model_copy(update={"when": NOON, "cells": tuple(cells)})]
    made = page("spark-1", results={("spark-1", "qwen36"): late})
    assert made.front == "spark-1: qwen36: begins to answer 468 % later (just now)"
    assert "500 ms, +468% against the median 88 ms" in html(made)


@cases("seconds", "message")
def test_ages_are_shown_in_their_largest_unit(seconds: float, message: str) -> None:
    assert ago(NOON - dt.timedelta(seconds=seconds), NOON) == message

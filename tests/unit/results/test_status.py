"""What a fleet runs, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparkwright.host.lib.records import decode, encode
from sparkwright.host.lock import Owner
from sparkwright.host.release import HistoryEntry
from sparkwright.plan.rollout import behind_another_proxy, earlier
from sparkwright.results.status import (
    Deployment,
    render_diff,
    render_history,
    render_status,
    well,
)
from sparkwright.text.lock_owner import age, described
from tests.unit.builders import kept_service

NOW = 1_800_000_000.0

STARTED = "2027-01-15T06:00:00.123456789Z"  # two hours before


def _record(release: str, tag: str) -> Any:
    return encode(replace(kept_service(release), tag=tag))


def answer(**changes: Any) -> Deployment:
    service = {
        "current": "b" * 12,
        "good": "b" * 12,
        "releases": {
            "a" * 12: {"at": NOW - 9e5, "service": _record("a" * 12, "old")},
            "b" * 12: {"at": NOW - 9e4, "service": _record("b" * 12, "new")},
        },
        "container": {
            "running": True, "started": STARTED, "release": "b" * 12, "image": "i",
        },
        "unit": {"ActiveState": "active", "NRestarts": "0"},
        "health": {"code": 200, "seconds": 0.004},
        "texts": {"compose.yaml": "one\ntwo\n"},
        **changes.pop("service", {}),
    }  # fmt: skip
    entry = {
        "service": "qwen36", "from_release": "a" * 12, "to": "b" * 12, "by": "ann@laptop",
        "at": NOW - 9e4, "why": ["release"], "down_seconds": 3.21, "result": "good", "reasons": [],
    }  # fmt: skip
    planned = {"release": "b" * 12, "tag": "new", "texts": {"compose.yaml": "one\ntwo\n"}}
    return decode(
        Deployment,
        {
            "now": NOW,
            "lock": None,
            "switch": None,
            "history": [entry],
            "services": {"qwen36": service},
            "planned": {"qwen36": {**planned, **changes.pop("planned", {})}},
            **changes,
        },
    )


def line(seen: Deployment) -> str:
    return render_status({"spark-1": seen}).splitlines()[1]


def test_a_service_that_is_well() -> None:
    for word in ("spark-1", "qwen36", "b" * 12, "new", "2 h", "ok in 4 ms", "as planned"):
        assert word in line(answer())
    assert well(answer())


def test_what_is_not_well_is_said() -> None:
    given_up = answer(
        service={
            "unit": {"ActiveState": "failed", "Result": "exit-code"},
            "container": None,
            "health": {"code": None, "said": "Connection refused"},
        }
    )
    assert "given up (exit-code)" in line(given_up)
    assert "Connection refused" in line(given_up)
    assert not well(given_up)
    drifted = answer(planned={"drift": ["release c after b"]})
    assert "differs: release c after b" in line(drifted)
    assert not well(drifted)
    never = answer(services={})
    assert "to start new" in line(never)
    assert not well(never)


def test_who_is_at_work_is_said() -> None:
    seen = answer(lock={"by": "bob@desk", "since": NOW - 180, "token": "t"},
                  switch={"step": "proving"})  # fmt: skip
    said = render_status({"spark-1": seen})
    assert "bob@desk (for 3 min) is at work on it" in said
    assert "a switch is under way: proving" in said


def test_history_is_one_line_a_switch() -> None:
    lines = render_history({"spark-1": answer()}, 10).splitlines()
    assert lines[1].split()[:4] == ["2027-01-14", "07:00Z", "spark-1", "qwen36"]
    for word in (f"{'a' * 12} (old)", f"{'b' * 12} (new)", "ann@laptop", "3.2 s", "good"):
        assert word in lines[1]
    assert render_history({"spark-1": answer(history=[])}, 10) == "no switch is recorded"


def test_a_difference_is_a_diff_and_none_is_nothing() -> None:
    assert render_diff({"spark-1": answer()}) == ""
    text = render_diff({"spark-1": answer(planned={"texts": {"compose.yaml": "one\nthree\n"}})})
    assert "-two" in text
    assert "+three" in text
    unplanned = replace(answer(), planned={})
    assert "runs, but is not planned" in render_diff({"spark-1": unplanned})


def test_ages() -> None:
    assert [age(one) for one in (-3, 5, 90, 7200, 200000)] == ["0 s", "5 s", "2 min", "2 h", "2 d"]
    assert described(Owner(), 5) == "somebody (for 0 s)"


def _switched(before: str, to: str, result: str) -> HistoryEntry:
    return HistoryEntry("qwen36", before, to, "ann@laptop", NOW, ("release",), 1.0, result, ())


def test_the_way_back_is_the_one_that_was_come() -> None:
    kept = {"a": 3.0, "b": 1.0, "c": 2.0}
    came = [_switched("b", "c", "good"), _switched("c", "a", "reverted")]
    assert earlier("c", kept, came) == "b"
    assert earlier("c", kept, []) == "a"  # the newest other one
    assert earlier("c", {"c": 2.0}, came) is None
    assert earlier("c", {"c": 2.0, "x": 1.0}, came) == "x"


def test_there_is_no_way_back_through_another_door() -> None:
    assert behind_another_proxy("qwen36", "a" * 12, was=True, planned=True) is None
    assert behind_another_proxy("qwen36", "a" * 12, was=False, planned=False) is None
    made = behind_another_proxy("qwen36", "a" * 12, was=False, planned=True)
    assert made is not None
    assert "was made without a proxy before it, and the plan has one" in made
    assert "was made with a proxy" in (
        behind_another_proxy("qwen36", "a" * 12, was=True, planned=False) or ""
    )


def test_what_the_watch_found_stands_first_errors_before_the_rest() -> None:
    found = [
        {"name": "drift", "service": "qwen36", "severity": "warning", "seen": "by hand"},
        {"name": "wedge", "service": "qwen36", "severity": "error", "seen": "no token"},
    ]
    ill = answer(watch={"at": NOW, "findings": [{**one, "since": NOW - 60} for one in found]})
    lines = render_status({"spark-1": ill, "spark-2": ill}).splitlines()
    assert lines[0] == (
        "spark-1, spark-2: qwen36: wedge: no token (watched for 1 min); and 1 finding more"
    )
    heads = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert heads == ["spark-1,", "error:", "warning:", "HOST", "spark-1", "spark-2"]


def test_who_stopped_a_service_is_said_while_it_is_so() -> None:
    mark = {"by": "ann@laptop", "at": NOW - 180, "why": "too loud", "active": "then"}
    down = {"ActiveState": "inactive", "NRestarts": "0", "ActiveEnterTimestamp": "then"}
    stopped = {"stopped": mark, "unit": down}
    said = render_status({"spark-1": answer(service=stopped)})
    assert "  spark-1: qwen36: stopped 3 min ago, by ann@laptop: too loud" in said.splitlines()
    later = {"stopped": mark, "unit": {**down, "ActiveEnterTimestamp": "later"}}
    assert "ann@laptop" not in render_status({"spark-1": answer(service=later)})
    assert "too loud" not in render_status({"spark-1": answer(service={"stopped": mark})})


def test_a_host_in_maintenance_is_shown_and_not_judged() -> None:
    mark = {"by": "ann@laptop", "at": NOW - 180, "why": "a new fan"}
    ill = {"unit": {"ActiveState": "failed", "NRestarts": "3"}}
    assert not well(answer(service=ill))
    seen = answer(service=ill, maintenance=mark)
    assert well(seen)
    said = render_status({"spark-1": seen}).splitlines()
    assert "  spark-1: in maintenance for 3 min, by ann@laptop: a new fan" in said


def test_one_that_sleeps_is_well_and_says_which_one_runs() -> None:
    down = {"service": {"unit": {"ActiveState": "inactive"}, "container": None, "health": None}}
    asleep = answer(**down, sleeping={"qwen36": "chat"})
    assert well(asleep)
    assert not well(answer(**down))
    line = render_status({"spark-1": asleep}).splitlines()[1]
    assert "sleeps" in line
    assert "chat runs" in line
    # What is not as planned of it is told all the same.
    assert not well(answer(**down, sleeping={"qwen36": "chat"}, planned={"drift": ["unit"]}))

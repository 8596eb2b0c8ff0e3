"""Text of `sparkwright status`."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

from sparkwright.host.lib.records import decode, encode
from sparkwright.host.lock import Owner
from sparkwright.host.release import HistoryEntry
from sparkwright.plan.rollout import behind_another_proxy, earlier
from sparkwright.results.status import Deployment, render_diff, render_history, render_status, well
from sparkwright.text.lock_owner import age, described
from tests.tables import Tables
from tests.unit.builders import kept_service

cases = Tables(__file__)

NOW = 1_800_000_000.0


def answer(**changes: Any) -> Deployment:
    """Status of a healthy host; ``service`` and ``planned`` change keys of its service."""
    data = deepcopy(cases.data["ANSWER"])
    service = data["services"]["qwen36"]
    for name, kept in service["releases"].items():
        kept["service"] = encode(replace(kept_service(name), tag=kept["service"]))
    service |= changes.pop("service", {})
    data["planned"]["qwen36"] |= changes.pop("planned", {})
    return decode(Deployment, {**data, **changes})


@cases("changes", "healthy", "contains", "absent")
def test_status_shows_and_judges_a_service(
    changes: dict[str, Any], healthy: bool, contains: list[str], absent: str
) -> None:
    host = answer(**changes)
    shown = render_status({"spark-1": host})
    assert well(host) is healthy
    assert all(text in shown for text in contains), shown
    assert not absent or absent not in shown


def test_history_has_one_line_for_each_switch() -> None:
    lines = render_history({"spark-1": answer()}, 10).splitlines()
    assert lines[1].split()[:4] == ["2027-01-14", "07:00Z", "spark-1", "qwen36"]
    for word in (f"{'a' * 12} (old)", f"{'b' * 12} (new)", "ann@laptop", "3.2 s", "good"):
        assert word in lines[1]
    assert render_history({"spark-1": answer(history=[])}, 10) == "no switch is recorded"


def test_history_has_starts_stops_and_maintenance() -> None:
    did = {"by": "bob@desk", "why": "a new fan"}
    actions = [{"at": NOW - 9, "done": "maintenance on", **did},
               {"at": NOW - 5, "done": "stopped", "service": "qwen36", **did}]  # fmt: skip
    host = answer(actions=actions)
    *_, out, stop = render_history({"spark-1": host}, 10).splitlines()
    assert all(text in out for text in ("spark-1", "bob@desk", "maintenance on", "a new fan"))
    assert "qwen36" in stop
    assert "stopped" in stop
    assert len(render_history({"spark-1": host}, 1).splitlines()) == 2
    assert host.only(lambda name: name == "other").actions == host.actions[:1]


def test_a_difference_is_shown_as_a_diff_and_equality_as_no_text() -> None:
    assert render_diff({"spark-1": answer()}) == ""
    text = render_diff({"spark-1": answer(planned={"texts": {"compose.yaml": "one\nthree\n"}})})
    assert "-two" in text
    assert "+three" in text
    assert "runs, but is not planned" in render_diff({"spark-1": replace(answer(), planned={})})


def test_ages_are_shown_in_their_largest_unit() -> None:
    assert [age(item) for item in (-3, 5, 90, 7200, 200000)] == [
        "0 s",
        "5 s",
        "2 min",
        "2 h",
        "2 d",
    ]
    assert described(Owner(), 5) == "somebody (for 0 s)"


def _switched(before: str, to: str, result: str) -> HistoryEntry:
    return HistoryEntry("qwen36", before, to, "ann@laptop", NOW, ("release",), 1.0, result, ())


def test_a_rollback_goes_to_the_former_release() -> None:
    kept = {"a": 3.0, "b": 1.0, "c": 2.0}
    came = [_switched("b", "c", "good"), _switched("c", "a", "reverted")]
    assert earlier("c", kept, came) == "b"
    assert earlier("c", kept, []) == "a"  # without a history, the newest other release
    assert earlier("c", {"c": 2.0}, came) is None
    assert earlier("c", {"c": 2.0, "x": 1.0}, came) == "x"


def test_a_rollback_is_refused_after_a_change_of_proxy() -> None:
    assert behind_another_proxy("qwen36", "a" * 12, was=True, planned=True) is None
    assert behind_another_proxy("qwen36", "a" * 12, was=False, planned=False) is None
    made = behind_another_proxy("qwen36", "a" * 12, was=False, planned=True)
    assert made is not None
    assert "was made without a proxy, and the plan has a proxy" in made
    assert "was made with a proxy" in (
        behind_another_proxy("qwen36", "a" * 12, was=True, planned=False) or ""
    )


def test_findings_of_the_watch_come_first_by_severity() -> None:
    result = [
        {"name": "drift", "service": "qwen36", "severity": "warning", "seen": "by hand"},
        {"name": "wedge", "service": "qwen36", "severity": "error", "seen": "no token"},
    ]
    ill = answer(watch={"at": NOW, "findings": [{**item, "since": NOW - 60} for item in result]})
    lines = render_status({"spark-1": ill, "spark-2": ill}).splitlines()
    assert lines[0] == (
        "spark-1, spark-2: qwen36: wedge: no token (watched for 1 min); and 1 finding more"
    )
    heads = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert heads == ["spark-1,", "error:", "warning:", "HOST", "spark-1", "spark-2"]

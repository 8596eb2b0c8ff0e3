"""Present findings, from answers of hosts and their watch."""

from dataclasses import replace
from typing import Any

from sparkwright.extras.notify.notices import current
from tests.tables import Tables
from tests.unit.extras.notify.watched_hosts import NOW, WEDGE, WatchFinding, host

cases = Tables(__file__)


def _notices(**hosts: object) -> list[tuple[str, str | None, str | None, str]]:
    silent = hosts.pop("silent", ())
    result, _ = current(hosts, silent)  # type: ignore[arg-type]
    return [(item.id, item.subject.host, item.subject.service, item.observed) for item in result]


def test_findings_of_the_watch_are_sent_with_reason_and_remedy() -> None:
    (item,), unknown = current({"spark-1": host(WEDGE)})
    assert (item.id, item.subject.host, item.subject.service) == ("wedge", "spark-1", "qwen36")
    assert item.observed == "3 requests ran without a token for 9 min"
    assert "front end answers" in item.reason
    assert "sudo systemctl restart sparkwright-qwen36" in item.remedy
    assert not unknown


@cases("text")
def test_every_figure_of_the_watch_is_sent(text: str) -> None:
    message = max(text.split("|"), key=len)
    assert _notices(a=host(replace(WEDGE, seen=text.replace("|", ""))))[0][3] == message


def test_a_recently_switched_release_is_suspected() -> None:
    entry = {
        "service": "qwen36", "from_release": "a" * 12, "to": "b" * 12, "by": "ann@laptop",
        "at": NOW - 720, "why": [], "down_seconds": 3.0, "result": "good", "reasons": [],
    }  # fmt: skip
    ((*_, observed),) = _notices(a=host(WEDGE, history=[entry]))
    assert observed.endswith(f"9 min, release {'a' * 12} -> {'b' * 12} 12 min ago")
    ((*_, observed),) = _notices(a=host(WEDGE, history=[{**entry, "at": NOW - 90000}]))
    assert "release" not in observed


def test_a_stopped_service_is_reported_without_a_finding_of_the_watch() -> None:
    down: Any = {"service": {"unit": {"ActiveState": "inactive"}, "container": None}}
    assert _notices(a=host(**down)) == [("stopped", "a", "qwen36", "")]
    # A more detailed finding of the watch replaces `stopped`; a sleeping service is not down.
    assert [item[0] for item in _notices(a=host(WEDGE, **down))] == ["wedge"]
    assert _notices(a=host(**down, sleeping={"qwen36": "chat"})) == []


def test_a_silent_host_is_the_only_finding_of_that_host() -> None:
    assert current({"spark-1": host()}) == ([], frozenset())
    result, unknown = current({"spark-1": host()}, ["spark-2"])
    assert [(item.id, item.subject.host) for item in result] == [("host-silent", "spark-2")]
    assert unknown == {"spark-2"}


def test_a_host_with_a_running_change_is_not_reported() -> None:
    lock = {"by": "ann@laptop", "since": NOW - 60}
    assert current({"a": host(WEDGE, lock=lock)}) == ([], frozenset("a"))
    assert current({"a": host(WEDGE, switch={"step": "stopped"})}) == ([], frozenset("a"))
    assert current({"a": host(WEDGE, switch={"step": "ended"})})[0]


def test_without_a_plan_deployed_services_are_reported_and_no_finding_ends() -> None:
    blind = host(WEDGE, plan_known=False)
    result, unknown = current({"a": replace(blind, planned={})})
    assert [(item.id, item.subject.service) for item in result] == [("wedge", "qwen36")]
    assert unknown == {"a"}


def test_a_stopped_watch_is_reported() -> None:
    asleep = host(WEDGE)
    assert asleep.watch
    asleep = replace(asleep, watch=replace(asleep.watch, at=NOW - 7200))
    assert _notices(a=asleep) == [("watch-asleep", "a", None, "the watch has not run for 2 h")]


def test_errors_come_first() -> None:
    warning = WatchFinding("drift", "qwen36", "warning", "compose.yaml was changed by hand")
    assert [item[0] for item in _notices(a=host(warning, WEDGE))] == ["wedge", "drift"]

"""Exclusive services: their group, and the calendar that switches them."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.configuration.parts import memory_of
from sparkwright.checks.host.judge import judge
from sparkwright.config.schedule import DAY, WEEK, calendar
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.exclusive import Group, due
from sparkwright.plan import schedule
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, plan, probe, wanted

RECIPE = SPARK["qwen36"]["recipe"]


def _service(port: int, group: str | None = "evening", **more: Any) -> dict[str, Any]:
    name = f"model-{port}"
    own = {"recipe": RECIPE, "port": port, "served_names": [name], **more}
    return own if group is None else {**own, "exclusive": group}


def _rules(services: dict[str, Any]) -> set[str]:
    planned = plan(services)
    return {item.id for item in check_host(planned, catalog(), assumed_hardware(planned))}


def test_the_first_service_in_the_settings_is_the_default() -> None:
    """Plans are sorted by name; a group keeps its written order."""
    planned = plan({"writer": _service(8000), "chat": _service(8001), "asr": _service(8002, None)})
    assert planned.groups == {"evening": ("writer", "chat")}
    assert [service.settings.exclusive for service in planned.services] == [
        None,
        "evening",
        "evening",
    ]


def test_only_the_largest_service_of_a_group_counts_as_memory_need() -> None:
    planned = plan({"a": _service(8000), "b": _service(8001), "c": _service(8002, None)})
    assert planned.largest({"a": 40.0, "b": 60.0, "c": 10.0}) == 70.0
    assert planned.largest({}) == 0


def test_members_of_a_group_share_a_sparks_memory() -> None:
    apart = {"a": _service(8000, None), "b": _service(8001, None)}
    assert "unified-memory" in _rules(apart)
    assert "unified-memory" not in _rules({"a": _service(8000), "b": _service(8001)})
    # Members of different groups run at the same time.
    other = {"a": _service(8000), "b": _service(8001, "morning")}
    assert "unified-memory" in _rules(other)
    beside = {"a": _service(8000), "b": _service(8001), "c": _service(8002, None)}
    assert "unified-memory" in _rules(beside)


def test_the_memory_bar_has_one_service_of_a_group() -> None:
    shown = memory_of(plan({"a": _service(8000), "b": _service(8001)}), catalog())
    assert shown == memory_of(plan({"a": _service(8000, None)}), catalog())


def test_preflight_requires_the_need_of_one_service_of_a_group() -> None:
    little = probe(memory={"total": 125513944 * 1024, "available": 90 * 1024**3})
    for services, problem in (
        ({"a": _service(8000), "b": _service(8001)}, []),
        ({"a": _service(8000), "b": _service(8001, "morning")}, ["memory-available"]),
    ):
        lower = {
            name: {**item, "arguments": {"gpu_memory_utilization": 0.45}}
            for name, item in services.items()
        }
        findings = judge(wanted(plan(lower)), little, 1000.0)
        assert [finding.id for finding in findings if finding.id.startswith("memory")] == problem


def test_without_proxies_members_share_a_port() -> None:
    bare: dict[str, Any] = {"proxy": False}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (bare, {"group": "morning", **bare}),  # a member of another group
        ({}, {}),  # the proxy answers for a sleeping service
        ({}, bare),
    ]
    plan({"a": _service(8000, served_names=["a"], **bare),
          "b": _service(8000, served_names=["b"], **bare)})  # fmt: skip
    for first, second in cases:
        services = {
            "a": _service(8000, **{"served_names": ["a"], **first}),
            "b": _service(8000, **{"served_names": ["b"], **second}),
        }
        with pytest.raises(UserError, match="port 8000 is taken by service 'a'"):
            plan(services)


def test_a_groups_name_is_checked_like_a_services_name() -> None:
    with pytest.raises(UserError, match=r"services\.a\.exclusive"):
        plan({"a": _service(8000, "In The Evening; rm")})


IDLE: dict[str, Any] = {"idle": {"after": "20m"}}


def test_a_service_with_an_idle_limit_has_its_own_group() -> None:
    planned = plan({"a": _service(8000, None, **IDLE), "b": _service(8001, None)})
    assert planned.groups == {"idle.a": ("a", "(nobody)")}
    (first, _) = planned.services
    assert (first.settings.activate, first.settings.idle.seconds) == ("on-request", 1200)  # type: ignore[union-attr]
    alone = {"a": _service(8000, None), "b": _service(8001, None)}
    idle = {name: {**item, **IDLE} for name, item in alone.items()}
    assert _rules(idle) == _rules(alone)  # the plan reserves the idle service's memory
    within = {"a": _service(8000, **IDLE, activate="on-request"), "b": _service(8001)}
    assert plan(within).groups == {"evening": ("a", "b", "(nobody)")}


SLEEP: dict[str, Any] = {"idle": {"after": "20m", "do": "sleep"}}


def test_only_an_engine_that_sleeps_when_idle_gets_sleep_mode() -> None:
    (asleep,) = plan({"a": _service(8000, None, **SLEEP)}).services
    (stopped,) = plan({"a": _service(8000, None, **IDLE)}).services
    arguments, environment = dict(asleep.arguments), dict(asleep.environment)
    assert (arguments.pop("enable_sleep_mode"), environment.pop("VLLM_SERVER_DEV_MODE")) == (
        True, "1")  # fmt: skip
    assert (arguments, environment) == (dict(stopped.arguments), dict(stopped.environment))
    assert (stopped.sleep, asleep.sleep is not None) == (None, True)


def test_an_engine_does_not_sleep_beside_services_that_need_its_memory() -> None:
    shared = {"a": _service(8000, **SLEEP, activate="on-request"), "b": _service(8001)}
    with pytest.raises(UserError, match=r"a\.idle\.do.*\n?.*group 'evening'[^§]*'do': 'stop'"):
        plan(shared)


def test_an_engine_without_sleep_mode_may_only_stop() -> None:
    other = {"recipe": "qwen38-27b-nvfp4-sglang-spark", "port": 8000}
    with pytest.raises(UserError, match=r"SGLang has no sleep[^§]*'do': 'stop'"):
        plan({"a": {**other, **SLEEP}})
    assert plan({"a": {**other, **IDLE}}).groups


def test_an_on_request_service_without_a_proxy_is_a_mistake() -> None:
    woken = {"activate": "on-request"}
    planned = plan({"a": _service(8000, **woken), "b": _service(8001)})
    assert [bool(service.settings.activate) for service in planned.services] == [True, False]
    for problem in (_service(8000, None, **woken), _service(8000, proxy=False, **woken)):
        with pytest.raises(UserError, match=r"services\.a\.activate"):
            plan({"a": problem})


cases = Tables(__file__)
EVENING: dict[str, Any] = {
    name: {"recipe": RECIPE, "port": port, "served_names": [name], "exclusive": "evening"}
    for name, port in (("chat", 8000), ("coder", 8001), ("writer", 8002))
}


def _minute(day: int, time: str) -> int:
    hours, minutes = time.split(":")
    return day * DAY + int(hours) * 60 + int(minutes)


@cases("text", "times")
def test_schedule_times_use_systemds_syntax(text: str, times: list[str]) -> None:
    assert [*calendar(text).times()] == times
    program = shutil.which("systemd-analyze")
    if program:
        for time in times:
            subprocess.run([program, "calendar", time], check=True, capture_output=True)


@cases("text")
def test_an_invalid_calendar_is_a_mistake_with_the_syntax(text: str) -> None:
    """The value becomes a line of a unit, and must add no other line."""
    with pytest.raises(UserError, match=r"schedule\.coder"):
        plan(EVENING, schedule={"coder": text})


@given(
    st.sets(st.sampled_from(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]), min_size=1),
    st.integers(0, DAY - 1),
    st.integers(1, DAY),
)
def test_windows_are_as_long_as_their_times(days: set[str], begin: int, length: int) -> None:
    end = (begin + length) % DAY
    if end == begin:
        return
    first, last = (f"{item // 60:02d}:{item % 60:02d}" for item in (begin, end))
    text = f"{','.join(sorted(days))} {first}..{last}"
    result = list(calendar(text).windows())
    assert all(0 <= item < other <= WEEK for item, other in result)
    assert sum(other - item for item, other in result) == len(days) * length


def test_a_service_runs_within_its_hours_and_the_default_at_other_times() -> None:
    settings = plan(
        EVENING, schedule={"coder": "Mon..Fri 08:00..18:00", "writer": "Sun 22:00..06:00"}
    ).settings
    group = Group(("chat", "coder", "writer"), schedule.windows(settings)["evening"])
    for day, time, runs in (
        (0, "07:59", "chat"), (0, "08:00", "coder"), (4, "17:59", "coder"), (4, "18:00", "chat"),
        (5, "12:00", "chat"), (6, "22:00", "writer"), (6, "23:59", "writer"),
        (0, "05:59", "writer"), (0, "06:00", "chat"),
    ):  # fmt: skip
        assert due(group, _minute(day, time)) == runs, (day, time)
    # A member that was removed is not activated.
    assert due(Group(("chat",), group.windows), _minute(0, "08:00")) == "chat"


@cases("written", "message")
def test_an_impossible_schedule_is_a_mistake(written: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan(EVENING, schedule=written)


def test_adjacent_hours_and_other_groups_do_not_overlap() -> None:
    plan(EVENING, schedule={"coder": "08:00..12:00", "writer": "12:00..18:00"})
    other = {**EVENING, "writer": {**EVENING["writer"], "exclusive": "morning",
                                   "arguments": {"gpu_memory_utilization": 0.3}}}  # fmt: skip
    plan(other, schedule={"coder": "08:00..12:00", "writer": "10:00..18:00"})


def test_a_service_without_a_group_has_no_hours() -> None:
    alone = {"chat": {"recipe": RECIPE}}
    with pytest.raises(UserError, match="the service is in no exclusive group"):
        plan(alone, schedule={"chat": "08:00..12:00"})
    assert json.dumps(schedule.windows(plan(alone).settings)) == "{}"

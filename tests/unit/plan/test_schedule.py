"""The calendar of exclusive services: what is read, what systemd gets, what can't be."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.config.schedule import DAY, WEEK, calendar
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.exclusive import Group, due
from sparkwright.plan import schedule
from tests.tables import Tables
from tests.unit.builders import SPARK, plan

cases = Tables(__file__)

RECIPE = SPARK["qwen36"]["recipe"]
EVENING: dict[str, Any] = {
    name: {"recipe": RECIPE, "port": port, "served_names": [name], "exclusive": "evening"}
    for name, port in (("chat", 8000), ("coder", 8001), ("writer", 8002))
}


def _minute(day: int, time: str) -> int:
    hours, minutes = time.split(":")
    return day * DAY + int(hours) * 60 + int(minutes)


@cases("text", "times")
def test_its_times_are_systemds(text: str, times: list[str]) -> None:
    assert [*calendar(text).times()] == times
    program = shutil.which("systemd-analyze")
    if program:
        for time in times:
            subprocess.run([program, "calendar", time], check=True, capture_output=True)


@cases("text")
def test_what_is_none_is_a_mistake_that_says_how_it_is_written(text: str) -> None:
    """A line of a unit is made of it: nothing else may get in."""
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


def test_within_its_hours_it_runs_and_outside_the_first_one_does() -> None:
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
    # A member that is gone does not run.
    assert due(Group(("chat",), group.windows), _minute(0, "08:00")) == "chat"


@cases("written", "message")
def test_what_can_not_be_is_a_mistake(written: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan(EVENING, schedule=written)


def test_times_that_touch_and_those_of_other_groups_are_none() -> None:
    plan(EVENING, schedule={"coder": "08:00..12:00", "writer": "12:00..18:00"})
    other = {**EVENING, "writer": {**EVENING["writer"], "exclusive": "morning",
                                   "arguments": {"gpu_memory_utilization": 0.3}}}  # fmt: skip
    plan(other, schedule={"coder": "08:00..12:00", "writer": "10:00..18:00"})


def test_one_of_no_group_has_no_hours() -> None:
    alone = {"chat": {"recipe": RECIPE}}
    with pytest.raises(UserError, match="it is of no exclusive group"):
        plan(alone, schedule={"chat": "08:00..12:00"})
    assert json.dumps(schedule.windows(plan(alone).settings)) == "{}"

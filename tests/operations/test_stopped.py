"""A deploy over a service that somebody stopped starts it again, and says who had."""

from __future__ import annotations

from typing import Any

from sparkwright.plan.changes import changes, restarts
from tests.operations.sites import running, site, spark
from tests.unit.builders import probe

MARK = {"by": "ann@laptop", "at": 940.0, "why": "too loud", "active": "then"}


def _changes(**unit: str) -> list[str]:
    run = site(spark(), spark("spark-2")).hosts["spark-1"]
    (one,) = run.services
    seen: dict[str, Any] = running(run)
    seen["services"][one.name]["stopped"] = MARK
    seen["services"][one.name]["container"] = None
    seen["units"][one.unit] |= unit
    return changes(one, run.secrets, probe(**seen))


def test_who_stopped_it_is_a_reason_of_the_start() -> None:
    found = _changes(ActiveState="inactive", ActiveEnterTimestamp="then")
    assert found == ["stopped 1 min ago, by ann@laptop: too loud", "start"]
    assert restarts(found)


def test_what_ended_by_itself_was_stopped_by_nobody() -> None:
    assert _changes(ActiveState="failed", ActiveEnterTimestamp="later") == ["start"]

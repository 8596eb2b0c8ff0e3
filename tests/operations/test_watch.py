"""The watch: every file of it in place and its timer on, or none of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.service.watch_plan import SERVICE, TIMER, watch_of
from sparkwright.host.watch.install import WatchInstallRequest
from sparkwright.operations import watch
from tests.operations.harness import Case, check, fake, run
from tests.operations.sites import written
from tests.unit.builders import plan, probe, wanted

DESIRED = wanted(plan())
WATCH = watch_of(DESIRED.plan, DESIRED.services)
FILES = watch.files_of(WATCH)
HOME = "/opt/sparkwright/watch"
CONFIG = f"{HOME}/config.json"


def _timer(**changes: str) -> dict[str, Any]:
    return {TIMER: {"ActiveState": "active", "UnitFileState": "enabled", **changes}}


IN_PLACE: dict[str, Any] = {
    "files": written(FILES),
    "units": _timer(),
    "unit_files": [SERVICE, TIMER],
}
INSTALL = WatchInstallRequest(HOME, TIMER, SERVICE, FILES)


@pytest.mark.parametrize(
    "case",
    [
        Case("in place", IN_PLACE, {"watch": WATCH}, noop="the watch is as desired"),
        Case("none wanted, none there", {}, {"watch": None}, noop="the watch is as desired"),
        Case(
            "other services since", {
                **IN_PLACE,
                "files": {**IN_PLACE["files"], CONFIG: {"sha256": "0", "mode": 0o644}},
            },
            {"watch": WATCH}, would=(f"write {CONFIG}",), asks=(("install", INSTALL),),
        ),
        Case(
            "what is planned was taken back", {
                **IN_PLACE,
                "files": {**IN_PLACE["files"], CONFIG: {"sha256": "0", "mode": 0o644}},
            },
            {"watch": WATCH, "unless": lambda: True},
            noop="what it would expect does not run: it stays as it is",
        ),
        Case(
            "another mode", {
                **IN_PLACE,
                "files": {
                    **IN_PLACE["files"], CONFIG: {**IN_PLACE["files"][CONFIG], "mode": 0o600},
                },
            },
            {"watch": WATCH}, would=(f"write {CONFIG}",), asks=(("install", INSTALL),),
        ),
        Case(
            "stopped", {**IN_PLACE, "units": _timer(ActiveState="inactive")},
            {"watch": WATCH}, would=(f"start {TIMER}",), asks=(("install", INSTALL),),
        ),
        Case(
            "not at boot", {**IN_PLACE, "units": _timer(UnitFileState="disabled")},
            {"watch": WATCH}, would=(f"start {TIMER}",), asks=(("install", INSTALL),),
        ),
        Case(
            "there, and no longer wanted", IN_PLACE, {"watch": None}, would=("remove the watch",),
            asks=(("install", replace(INSTALL, files={})),),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_installed(case: Case) -> None:
    request = watch.request_of(FILES if case.arguments["watch"] else {})
    answered = replace(case, answers={"install": list(case.would)})
    check(watch.installed, answered, probe(**case.seen), request)


def test_a_fresh_host_gets_all_of_it_in_one_execution() -> None:
    host = fake(probe(), watch.request_of(FILES), install=["installed the watch"])
    ran = run(host, watch.installed, WATCH, execute=True)
    assert host.programs == ["lock", "install"]
    assert ran.memory.changes == ["installed the watch"]
    assert ran.memory.stale
    dry = run(fake(probe(), watch.request_of(FILES)), watch.installed, WATCH)
    assert dry.host.lines == [*(f"would write {path}" for path in FILES), f"would start {TIMER}"]

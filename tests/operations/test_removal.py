"""Removal, pruning and the watch: what would go, what goes, and when there is nothing to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.host.bootstrap.prepare import RECORD
from sparkwright.host.bootstrap.undo import UndoAnswer
from sparkwright.host.disk_usage import DiskUsage, DiskUsageRequest, Item
from sparkwright.host.observation import ObservationRequest
from sparkwright.host.removal import RemovalAnswer, RemovalRequest
from sparkwright.operations import disk_usage, removal
from tests.operations.harness import Case, Said, as_json, busy, check, fake, run
from tests.unit.builders import probe

#: What the change of addresses keeps, as long as they are there.
FABRIC = "/var/lib/sparkwright/fabric/devices"
ROOT = "/opt/sparkwright"
HOME = f"{ROOT}/services/qwen36"
THERE = {"mode": 0o755, "uid": 0}
MODELS = "/opt/models"
ASKED = ObservationRequest(
    directories=(MODELS, ROOT, HOME, f"{ROOT}/services/gone"), files=(RECORD, FABRIC)
)
DONE = RemovalAnswer(("service qwen36",), ("service 'x': there is none",))


@pytest.mark.parametrize(
    "case",
    [
        Case("nothing is here", {"directories": {ROOT: None}}, {},
             noop="nothing of sparkwright's is here"),
        Case(
            "everything", {"unit_files": ["sparkwright-qwen36.service"],
                           "directories": {ROOT: THERE}}, {},
            would=("remove sparkwright-qwen36.service", f"remove {ROOT} and its images"),
            asks=(("removal", RemovalRequest()),), done=("removed service qwen36",),
        ),
        Case(
            "everything and the models", {"directories": {MODELS: THERE}}, {"weights": True},
            would=("remove the models below /opt/models",),
            asks=(("removal", RemovalRequest(weights=True)),), done=("removed service qwen36",),
        ),
        Case("no models are here", {"directories": {MODELS: None}}, {"weights": True},
             noop="nothing of sparkwright's is here"),
        Case(
            "one service", {"directories": {ROOT: THERE, HOME: THERE}}, {"services": ["qwen36"]},
            would=("remove service qwen36",),
            asks=(("removal", RemovalRequest(services=("qwen36",))),),
            done=("removed service qwen36",),
        ),
        Case(
            "a service that is gone", {"directories": {ROOT: THERE, HOME: None}},
            {"services": ["qwen36"]}, noop="no such service is here",
        ),
        Case(
            "one of two services", {"directories": {ROOT: THERE, HOME: THERE}},
            {"services": ["qwen36", "gone"]}, would=("remove service qwen36",),
            # The host's own account names the other.
            asks=(("removal", RemovalRequest(services=("qwen36", "gone"))),),
            done=("removed service qwen36",),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_removed(case: Case) -> None:
    check(removal.removed, replace(case, answers={"removal": DONE}), probe(**case.seen), ASKED)


def test_with_everything_the_lock_goes_too() -> None:
    told: list[RemovalAnswer] = []
    host = fake(probe(directories={ROOT: THERE}), ASKED, removal=DONE)
    ran = run(host, removal.removed, answered=told.append, execute=True)
    assert (told, ran.memory.locked, ran.memory.stale) == ([DONE], None, True)
    host = fake(probe(directories={HOME: THERE}), ASKED, removal=DONE)
    ran = run(host, removal.removed, ["qwen36"], execute=True)
    assert ran.memory.locked == ROOT


@pytest.mark.parametrize(
    ("services", "left"), [(None, ()), (["gone"], ("service 'gone': there is none",))]
)
def test_nothing_to_remove_is_an_answer_too(
    services: list[str] | None, left: tuple[str, ...]
) -> None:
    told: list[RemovalAnswer] = []
    run(fake(probe(), ASKED), removal.removed, services, answered=told.append)
    assert told == [RemovalAnswer((), left)]
    told.clear()
    run(fake(probe(directories={MODELS: THERE}), ASKED), removal.removed, answered=told.append)
    assert told == [RemovalAnswer((), (f"{MODELS}: the models (--weights removes them)",))]


RECORDED = {RECORD: {"sha256": "0", "mode": 0o600}}
UNDONE = UndoAnswer(("package docker.io",), ("driver: the driver stays",))


def test_what_bootstrap_did_is_undone_on_request_once_the_rest_is_gone() -> None:
    told: list[RemovalAnswer] = []
    seen = probe(directories={ROOT: THERE}, files=RECORDED)
    host = fake(seen, ASKED, removal=DONE, undo=UNDONE)
    ran = run(host, removal.removed, bootstrap=True, answered=told.append, execute=True)
    assert ran.well
    assert host.programs == ["lock", "removal", "undo"]
    assert told == [RemovalAnswer((*DONE.done, *UNDONE.done), (*DONE.left, *UNDONE.left))]
    assert ran.memory.changes == ["removed service qwen36", "removed package docker.io"]


def test_it_stays_unasked_and_is_named() -> None:
    told: list[RemovalAnswer] = []
    seen = probe(directories={ROOT: THERE}, files=RECORDED)
    host = fake(seen, ASKED, removal=DONE)
    run(host, removal.removed, answered=told.append, execute=True)
    assert host.programs == ["lock", "removal"]
    assert "--bootstrap undoes it" in told[0].left[-1]
    # Of one service alone nothing is said of it, and without a record nothing is done.
    told.clear()
    run(fake(seen, ASKED, removal=DONE), removal.removed, ["qwen36"], answered=told.append)
    host = fake(probe(), ASKED)
    run(host, removal.removed, bootstrap=True, answered=told.append, execute=True)
    assert (host.programs, told[-1].left) == ([], ())


def test_only_bootstrap_s_is_left_to_undo() -> None:
    host = fake(probe(files=RECORDED), ASKED, removal=RemovalAnswer((), ()), undo=UNDONE)
    ran = run(host, removal.removed, bootstrap=True)
    assert host.lines == ["would undo what bootstrap did"]
    assert len(ran.commands) == 1


def test_only_the_fabric_s_addresses_are_left_to_take_back() -> None:
    seen = probe(files={FABRIC: {"sha256": "0", "mode": 0o600}})
    host = fake(seen, ASKED, removal=RemovalAnswer(("the addresses of the fabric",), ()))
    ran = run(host, removal.removed)
    assert host.lines == ["would take the fabric's addresses back"]
    assert len(ran.commands) == 1


MODEL = Item("model", "a@1", "/opt/models/a/1", 10, 10)
USED = Item("image", "vllm:1", "vllm:1", 10, 10, ("the plan",))
FOREIGN = Item("model", "b@1", "/opt/models/b/1", 10, 10, fault="has no receipt")
DAMAGED = Item("model", "c@1", "/opt/models/c/1", 10, 10, fault="has another size")
REQUEST = DiskUsageRequest(planned=("vllm:1",))
PRUNE = replace(REQUEST, prune=True)


def _usage(*items: Item) -> DiskUsage:
    return DiskUsage(items, ())


def _host(before: DiskUsage, after: Any = None) -> Any:
    def answer(request: Any) -> Any:
        return after if request["prune"] else before

    return fake(probe(), disk_usage=answer)


@pytest.mark.parametrize("things", [(), (USED,), (USED, FOREIGN)])
def test_nothing_is_pruned_that_is_needed_or_nobody_knows(things: tuple[Item, ...]) -> None:
    told: list[DiskUsage] = []
    host = _host(_usage(*things))
    ran = run(host, disk_usage.pruned, REQUEST, answered=told.append, execute=True)
    assert ran.commands == []
    assert host.noops == ["everything there is needed"]
    assert host.request("disk-usage") == as_json(REQUEST)
    assert told == [_usage(*things)]


def test_pruned() -> None:
    before = _usage(USED, MODEL, FOREIGN, DAMAGED)
    after = _usage(USED, replace(MODEL, removed=True), FOREIGN, DAMAGED)
    told: list[DiskUsage] = []
    host = _host(before, after)
    ran = run(host, disk_usage.pruned, REQUEST, answered=told.append)
    assert host.lines == ["would remove model a@1", "would remove model c@1"]
    assert (len(ran.commands), told, host.programs) == (1, [], ["disk-usage"])
    host = _host(before, after)
    ran = run(host, disk_usage.pruned, REQUEST, answered=told.append, execute=True)
    assert host.programs == ["disk-usage", "lock", "disk-usage"]
    assert [one.request for one in host.asked][::2] == [as_json(REQUEST), as_json(PRUNE)]
    # What is gone, by the host's own account, and not what was to go.
    assert ran.memory.changes == ["removed model a@1"]
    assert told == [after]
    assert ran.memory.stale


def test_pruning_waits_for_no_other_run_and_names_a_failure() -> None:
    host = _host(_usage(MODEL))
    host.answers["lock"] = busy
    ran = run(host, disk_usage.pruned, REQUEST, execute=True)
    assert not ran.well
    assert host.programs == ["disk-usage", "lock"]
    host = _host(_usage(MODEL), Said(err="no space", ok=False))
    ran = run(host, disk_usage.pruned, REQUEST, execute=True)
    assert ran.memory.failure == "sparkwright-disk-usage: no space"

"""Removal, pruning and the watch: what would go, what goes, and when there is nothing to do."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.host.bootstrap.prepare import RECORD
from sparkwright.host.disk_usage import DiskUsage, DiskUsageRequest, Item
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.removal import RemovalAnswer
from sparkwright.operations import disk_usage, removal
from tests.operations.harness import as_json, fake, run
from tests.unit.builders import probe

#: What the change of addresses keeps, as long as they are there.
FABRIC = "/var/lib/sparkwright/fabric/devices"
ROOT = "/opt/sparkwright"
HOME = f"{ROOT}/services/qwen36"
THERE = {"mode": 0o755, "uid": 0}
MODELS = "/opt/models"
USAGE = "/var/lib/sparkwright-models"
ASKED = ObservationRequest(
    directories=(MODELS, ROOT, USAGE, HOME, f"{ROOT}/services/gone"), files=(RECORD, FABRIC)
)
DONE = RemovalAnswer(("service qwen36",), ("service 'x': there is none",))


def test_with_everything_the_lock_goes_too() -> None:
    removal_answers: list[RemovalAnswer] = []
    host = fake(probe(directories={ROOT: THERE}), ASKED, removal=DONE)
    ran = run(host, removal.removed, answered=removal_answers.append, execute=True)
    assert (removal_answers, ran.memory.locked, ran.memory.stale) == ([DONE], None, True)
    host = fake(probe(directories={HOME: THERE}), ASKED, removal=DONE)
    ran = run(host, removal.removed, ["qwen36"], execute=True)
    assert ran.memory.locked == ROOT


def test_the_use_of_keys_is_named_where_nothing_else_is_left() -> None:
    answers: list[RemovalAnswer] = []
    host = fake(probe(directories={USAGE: THERE}), ASKED)
    run(host, removal.removed, answered=answers.append, execute=True)
    assert answers == [RemovalAnswer((), (f"{USAGE}/usage.db: the use of API keys",))]


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
    disk_usages: list[DiskUsage] = []
    host = _host(_usage(*things))
    ran = run(host, disk_usage.pruned, REQUEST, answered=disk_usages.append, execute=True)
    assert ran.commands == []
    assert host.noops == ["everything there is needed"]
    assert host.request("disk-usage") == as_json(REQUEST)
    assert disk_usages == [_usage(*things)]


def test_pruned() -> None:
    before = _usage(USED, MODEL, FOREIGN, DAMAGED)
    after = _usage(USED, replace(MODEL, removed=True), FOREIGN, DAMAGED)
    disk_usages: list[DiskUsage] = []
    host = _host(before, after)
    ran = run(host, disk_usage.pruned, REQUEST, answered=disk_usages.append)
    assert host.lines == ["would remove model a@1", "would remove model c@1"]
    assert (len(ran.commands), disk_usages, host.programs) == (1, [], ["disk-usage"])
    host = _host(before, after)
    ran = run(host, disk_usage.pruned, REQUEST, answered=disk_usages.append, execute=True)
    assert host.programs == ["disk-usage", "lock", "disk-usage"]
    assert [item.request for item in host.asked][::2] == [as_json(REQUEST), as_json(PRUNE)]
    # What is gone, by the host's own account, and not what was to go.
    assert ran.memory.changes == ["removed model a@1"]
    assert disk_usages == [after]
    assert ran.memory.stale

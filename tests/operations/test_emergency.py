"""Every command of an emergency, with a broken plan: it goes by what the hosts say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.service.facts import Planned
from sparkwright.facts.asking import HostError
from sparkwright.host.disk_usage import DiskUsage, Item
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.proxy.pool import Pool, Sockets
from sparkwright.host.release import ServiceSwitch
from sparkwright.host.removal import RemovalAnswer
from sparkwright.host.smoke.check import DeepCheckResult
from sparkwright.host.smoke.deep import DeepAnswer
from sparkwright.host.status import HostStatus
from sparkwright.host.verify_models import Verified
from sparkwright.operations import disk_usage
from sparkwright.run import planless, questions, rollback
from sparkwright.run.state import HostRun, attach
from tests.operations.emergencies import host, sparkwright, unreachable, write_site
from tests.operations.harness import FakeHost, fake
from tests.unit.builders import kept_service, probe
from tests.unit.checks.service import builders as ill
from tests.unit.results.test_status import answer

ROOT = "/data/sparkwright"
HOME = f"{ROOT}/services/qwen36"
MODEL = Item("model", "a/b@cccc", f"/opt/models/a--b/{'c' * 40}", 5, 5, ("qwen36 b",))
BARE = Item("model", "a/d@dddd", f"/opt/models/a--d/{'d' * 40}", 5, 5, (), "has no receipt")
STAGE = Item("unfinished", "a@1", "/opt/models/a--b/.staging-1", 7, 7)
USAGE = DiskUsage((MODEL, BARE, STAGE), ())
BROKEN = {"group_data__all": "services = {\n"}


def gate(release: str = "b" * 12, root: str = ROOT, **changes: Any) -> dict[str, Any]:
    """A release's record, as the host's status has it; with changes of its smoke test."""
    found: dict[str, Any] = encode(kept_service(release, root=root, **changes))
    return found


def status(*, root: str = ROOT, proxy: Any = None, **changes: Any) -> HostStatus:
    """A host with one service of two releases."""
    seen = encode(answer())
    for release, kept in seen["services"]["qwen36"]["releases"].items():
        kept["service"] = gate(release, root, proxy=proxy)
    known = {key: seen[key] for key in encode(HostStatus(0, None, None, (), {}))}
    return decode(HostStatus, {**known, **changes})


def unplanned(**answers: Any) -> tuple[FakeHost, HostRun]:
    """A host in a run without a plan; its services lie where group_data could still be read."""
    answers.setdefault("status", status())
    one = fake(None, **answers)
    one.data = _Data(services_root=ROOT, ssh_hostname="10.0.0.1")
    hosts: Any = {"spark-1": one}
    run = planless.unplanned_run(hosts, {"inventory": "i", "dry": False}, "it is broken")
    attach(run, hosts)
    return one, run.hosts["spark-1"]


class _Data(dict[str, Any]):
    def __init__(self, **said: Any) -> None:
        super().__init__(said)

    def dict(self) -> dict[str, Any]:
        return self


def test_the_doctor_examines_what_the_releases_name() -> None:
    one, run = unplanned(doctor=ill.spark())
    found = questions.facts(one, run)  # type: ignore[arg-type]
    assert one.programs == ["status", "doctor"]
    (asked,) = one.request("doctor")["services"]
    assert asked == {"name": "qwen36", "address": "127.0.0.1", "port": 8000}
    assert found.planned["qwen36"] == Planned("b" * 12, "new", ("qwen36-fast",), 600, False)


def test_smoke_asks_for_what_the_release_itself_promises() -> None:
    passed = DeepAnswer("b" * 12, (DeepCheckResult("chat", "passed", 1.0, "ok"),))
    one, run = unplanned(deep={"qwen36": passed})
    found = questions.deep_smoke(one, run)  # type: ignore[arg-type]
    (asked,) = one.request("deep")["services"]
    assert asked["secrets"] == f"{HOME}/secrets.env"
    assert asked["served_names"] == ["qwen36-fast"]
    assert "not known while the plan is broken" in asked["skip"]["tools"]
    assert "chat" not in asked["skip"]
    assert found["qwen36"].planned == "b" * 12


def test_a_release_that_does_not_say_what_it_must_answer_is_no_pass() -> None:
    seen = encode(status())
    seen["services"]["qwen36"]["releases"]["b" * 12]["service"] = None
    one, run = unplanned(status=seen, deep={})
    with pytest.raises(HostError, match="qwen36: its release does not say what it must answer"):
        questions.deep_smoke(one, run)  # type: ignore[arg-type]


def _back(one: FakeHost, run: HostRun) -> ServiceSwitch:
    found = rollback.targets_of(one, run, to=None, service=None)  # type: ignore[arg-type]
    assert found is not None
    (switch,) = found
    return switch


def test_back_to_the_release_before_by_its_own_gate() -> None:
    one, run = unplanned()
    switch = _back(one, run)
    assert one.programs == ["status"]
    assert (switch.to, switch.from_release) == ("a" * 12, "b" * 12)
    assert (switch.home, switch.service.secrets) == (HOME, f"{HOME}/secrets.env")
    assert switch.service.unit_path == "/etc/systemd/system/sparkwright-qwen36.service"
    assert (switch.gate.unit, switch.service.pool) == ("sparkwright-qwen36.service", None)
    assert not switch.files


def test_behind_a_proxy_it_is_drained_first() -> None:
    seen = encode(status(proxy=("127.0.0.1", 8001)))
    sockets = Sockets("/run/sparkwright-gateway/admin.sock", "")
    kept = seen["services"]["qwen36"]["releases"]["b" * 12]["service"]
    kept["pool"] = encode(Pool("qwen36", sockets, 7, 600))
    one, run = unplanned(status=seen)
    switch = _back(one, run)
    pool = switch.service.pool
    assert pool is not None
    assert pool.sockets.admin == "/run/sparkwright-gateway/admin.sock"
    assert (pool.proxy, pool.replica) == ("qwen36", "self")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"service": "other"}, "service other was never started here"),
        ({"to": "c" * 12}, f"has no release {'c' * 12} here"),
    ],
)
def test_what_a_host_cannot_go_back_to(changes: Any, words: str) -> None:
    one, run = unplanned()
    asked = {"to": None, "service": None, **changes}
    assert rollback.targets_of(one, run, **asked) is None  # type: ignore[arg-type]
    assert words in str(one.memory.failure)


def test_models_are_verified_that_have_a_receipt() -> None:
    one, run = unplanned(disk_usage=USAGE, verify_models={MODEL.path: Verified(1, 5, 1.0, ())})
    assert questions.hashed_again(one, run) == []  # type: ignore[arg-type]
    assert one.request("verify-models")["directories"] == [MODEL.path]


def test_without_a_plan_no_model_is_pruned() -> None:
    one, run = unplanned(disk_usage=USAGE)
    disk_usage.listed(one, questions.disk_usage_request(run))  # type: ignore[arg-type]
    assert one.request("disk-usage")["plan_known"] is False


#: The command, what the host answers beside its status, and what is then said.
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "status": (("status",), {}, "unknown"),
    "history": (("history",), {}, "ann@laptop"),
    "doctor": (("doctor",), {"doctor": ill.spark()}, "@fake/spark-1: "),
    "models list": (("models", "list"), {"disk_usage": USAGE}, "a/b@cccc"),
    "verify": (
        ("verify",),
        {"disk_usage": USAGE, "verify_models": {MODEL.path: Verified(1, 5, 1.0, ())}},
        "0 wrong",
    ),
    "smoke": (
        ("smoke",),
        {"deep": {"qwen36": DeepAnswer("b" * 12, (DeepCheckResult("chat", "passed", 1.0, "k"),))}},
        "chat",
    ),
    "remove": (
        ("remove", "--yes"),
        {
            "observe": probe(unit_files=["sparkwright-qwen36.service"]),
            "lock": {"held": True},
            "removal": RemovalAnswer(("unit sparkwright-qwen36.service",), ()),
        },
        "removed unit sparkwright-qwen36.service",
    ),
    "rollback": (("rollback", "--yes", "--to", "c" * 12), {}, f"has no release {'c' * 12} here"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_an_emergency(tmp_path: Path, name: str) -> None:
    """One host answers, one is off: the answer is there, the other is named, and it is an error."""
    words, answers, expected = COMMANDS[name]
    write_site(
        tmp_path,
        host("spark-1", status=status(root="/opt/sparkwright"), **answers),
        unreachable("spark-2"),
        **BROKEN,
    )
    done = sparkwright(tmp_path, *words)
    said = done.stdout + done.stderr
    assert expected in said
    assert said.count("the plan is broken: group_data/all.py: line 1: not valid Python") == 1
    assert done.returncode == 1
    assert "spark-2" in done.stderr
    assert "127.0.0.1" in done.stderr


def test_without_a_plan_a_diff_is_none(tmp_path: Path) -> None:
    write_site(tmp_path, host("spark-1", status=status(root="/opt/sparkwright")), **BROKEN)
    done = sparkwright(tmp_path, "diff")
    assert (done.returncode, done.stdout) == (2, "")
    assert "group_data/all.py: line 1" in done.stderr

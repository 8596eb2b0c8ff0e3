"""Smoke tests: what is asked of whom, and what a failure says."""

from sparkwright.checks.smoke.result import Smoke
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.operations import smoke
from tests.operations.harness import as_json, fake, run
from tests.unit.builders import probe

CHAT, CODE = (
    SmokeRequest(name, f"{name}.service", "127.0.0.1", port, "/s", ("m",), boot, 10)
    for name, port, boot in (("chat", 8000, 900), ("code", 8001, 60))
)
WELL = SmokeAnswer((CheckResult("health", True, 0.5),))
ILL = SmokeAnswer(
    (CheckResult("health", True, 0.5), CheckResult("key", False, 0.5, "answered without a key")),
    ("INFO: started", "ERROR: killed"),
)


def test_good_answers_are_no_change() -> None:
    smokes: dict[str, Smoke] = {}
    host = fake(probe(), check={"chat": WELL, "code": WELL})
    ran = run(host, smoke.answers, (CHAT, CODE), judged=smokes.__setitem__, execute=True)
    assert ran.commands == []
    assert host.request("check") == as_json((CHAT, CODE))
    # The slowest service's deadlines, and some more for the way.
    assert host.asked[0].arguments["_timeout"] == 900 + 4 * 10 + 60
    assert {name: (item.passed, item.total) for name, item in smokes.items()} == {
        "chat": (1, 1), "code": (1, 1),
    }  # fmt: skip


def test_nobody_is_asked_while_preparing_or_without_a_service() -> None:
    host = fake(probe())
    assert run(host, smoke.answers, (CHAT,)).commands == []
    assert run(host, smoke.answers, (), execute=True).commands == []
    assert host.asked == []
    assert host.noops == ["no service of this host"]


def test_a_bad_answer_fails_the_host_with_the_services_last_lines() -> None:
    smokes: dict[str, Smoke] = {}
    host = fake(probe(), check={"chat": WELL, "code": ILL})
    ran = run(host, smoke.answers, (CHAT, CODE), judged=smokes.__setitem__, execute=True)
    assert not ran.well
    assert host.lines == [
        "service code fails its smoke test: key: answered without a key",
        "    journal: INFO: started",
        "    journal: ERROR: killed",
    ]
    assert ran.memory.failure == host.lines[0]
    # It changes nothing, and takes no lock for it.
    assert (host.programs, ran.memory.changes) == (["check"], [])
    assert smokes["code"].failures == ("key: answered without a key",)

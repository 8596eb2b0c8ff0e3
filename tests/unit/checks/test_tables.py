"""Every check of every table has its texts once, and a judgement or a pattern."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.configuration import RULES
from sparkwright.checks.fabric import judge as fabric
from sparkwright.checks.host import judge as preflight
from sparkwright.checks.service import diagnose as doctor
from sparkwright.checks.service.logs import patterns
from sparkwright.findings.check import Check, Checks, Symptom, check, load
from sparkwright.findings.finding import Severity

#: Checks that only the watch finds, over hours; see sparkwright/host/watch.
WATCHED = {"acceptance-decays", "disk-fills", "drift", "watch-asleep"}
TABLES: dict[str, tuple[Checks[Any], set[str]]] = {
    "rules": (RULES, set()),
    "preflight": (preflight.CHECKS, set()),
    "doctor": (doctor.CHECKS, {*patterns(), *WATCHED, *doctor.BETWEEN_HOSTS.ids}),
    "fabric": (fabric.CHECKS, set()),
}


@pytest.mark.parametrize("table", TABLES)
def test_every_check_has_texts_and_a_judgement(table: str) -> None:
    checks, elsewhere = TABLES[table]
    assert {*checks.texts} == {*checks.ids, *elsewhere}
    ids = [id_ for path in checks.files for id_ in re.findall(r"(?m)^([\w-]+):", path.read_text())]
    assert [id_ for id_, count in Counter(ids).items() if count > 1] == []
    for entry in checks.texts.values():
        assert entry.reason, entry.id
        assert entry.source, entry.id
        # The remedy of a rule or of preflight depends on what was written, or on the host.
        assert entry.remedy or table in ("rules", "preflight"), entry.id


def test_a_judgement_of_several_checks_names_one_and_texts_can_differ(tmp_path: Path) -> None:
    path = tmp_path / "checks.yaml"
    path.write_text("a:\n  reason: r\n  remedy: restart UNIT\n  source: s\n"
                    "b:\n  severity: warning\n  reason: r2\n  source: s\n")  # fmt: skip

    @check("a", "b")
    def judge(facts: int) -> list[Symptom]:
        return [Symptom("first", service="q", check="b", remedy="x"), Symptom("second")][:facts]

    class Module:
        judgement = judge

    table = Checks[int]([path], [Module])  # type: ignore[list-item]
    assert [(one.id, one.severity, one.remedy) for one in table.findings(2)] == [
        ("a", Severity.ERROR, "restart 'sparkwright-*'"),
        ("b", Severity.WARNING, "x"),
    ]
    assert table.findings(0) == []
    assert load(path)["a"] == Check("a", Severity.ERROR, "r", "s", "restart UNIT")

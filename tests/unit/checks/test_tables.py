"""Every check of every table has its texts once, and a judgement or a pattern."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from sparkwright.checks.configuration import RULES
from sparkwright.checks.fabric import judge as fabric
from sparkwright.checks.host import judge as preflight
from sparkwright.checks.service import diagnose as doctor
from sparkwright.checks.service.log_lines import FILES
from sparkwright.engines import ENGINES
from sparkwright.findings.check import Checks, load
from tests.unit.builders import ROOT

#: Checks that only the watch finds, over hours; see sparkwright/host/watch.
WATCHED = {"acceptance-decays", "disk-fills", "drift", "watch-asleep"}
ENGINE_CAUSES = {id_ for path in FILES for id_ in load(path)}
TABLES: dict[str, tuple[Checks[Any], set[str]]] = {
    "rules": (RULES, set()),
    "preflight": (preflight.CHECKS, set()),
    "doctor": (doctor.CHECKS, {*ENGINE_CAUSES, *WATCHED, *doctor.BETWEEN_HOSTS.ids}),
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
        # The remedy of a rule or of preflight depends on the settings, or on the host.
        assert entry.remedy or table in ("rules", "preflight"), entry.id


def _given(path: Path) -> Iterator[tuple[str, list[object], set[str]]]:
    """Every symptom in a module's source: check, its case if there is a case, and values."""
    for function in ast.walk(ast.parse(path.read_text())):
        decorators = function.decorator_list if isinstance(function, ast.FunctionDef) else []
        nodes = [node for decorator in decorators for node in ast.walk(decorator)]
        ids = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
        for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Symptom":
                literal = [getattr(argument, "value", None) for argument in call.args]
                names = {keyword.arg or "**" for keyword in call.keywords}
                yield str([*literal, *ids, ""][0]), literal[1:], names


FOLDERS = ["checks/configuration", "checks/host", "checks/service", "checks/fabric"]
FOLDERS += [f"engines/{module.split('.')[-2]}" for module in ENGINES.values()]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_judgement_yields_every_value_of_its_texts(folder: str) -> None:
    root = ROOT / "sparkwright" / folder
    texts = {id_: entry for path in root.glob("*checks.yaml") for id_, entry in load(path).items()}
    missing = []
    for name, (id_, case, names) in [
        (path.name, symptom) for path in root.glob("*.py") for symptom in _given(path)
    ]:
        if id_ not in texts or "**" in names:
            continue
        cases = texts[id_].cases
        written = case if case and case[0] is not None else [*cases] if case else [""]
        for entry in ({**vars(texts[id_]), **cases.get(str(item), {})} for item in written):
            needed = {
                re.split(r"[.!]", field)[0]
                for text in ("observed", "expected", "key", "reason", "remedy", "source")
                if text not in names
                for _, field, _, _ in Formatter().parse(entry[text])
                if field
            }
            needed |= set() if entry["observed"] else {"observed"}
            missing += [(name, id_, field) for field in needed - names]
    assert missing == []

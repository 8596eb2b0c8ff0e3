"""Five hosts, three of them equal, and their answers, for tests of every command's output."""

import contextlib
import importlib
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import Result

from docs.generate.documents import documents
from sparkwright.checks.fabric.groups import FabricLook
from sparkwright.checks.smoke.verdict import DeepResult
from sparkwright.cli import bundle as bundle_command
from sparkwright.config.inventory import read_inventory
from sparkwright.config.tls import CA
from sparkwright.host.control import ControlAnswer
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.lib.records import decode
from sparkwright.host.maintenance import MaintenanceAnswer
from sparkwright.host.models.report import UsageRow
from sparkwright.host.removal import RemovalAnswer
from sparkwright.site.fleet import plan_fleet
from tests.tables import Tables
from tests.unit.builders import ROOT, locked
from tests.unit.checks.fabric import states as fabric
from tests.unit.checks.service import builders as ill
from tests.unit.cli import answering as sessions
from tests.unit.results.test_status import answer

SPARKS = ("spark-1", "spark-2", "spark-3")
HOSTS = (*SPARKS, "rtx-1", "rtx-2")
_INVENTORY = f'sparks = {list(SPARKS)!r}\nrtx50 = ["rtx-1", ("rtx-2", {{"keep_releases": 5}})]\n'
_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
_DATA = Tables(__file__).data
LONG = _DATA["SMOKE"]["checks"][1]["detail"]
#: Answer of a host to each request.
ANSWERS: dict[str, Any] = {
    "deployment": answer(planned=_DATA["WATCHED"]),
    "fabric": FabricLook(fabric.pair()["spark-1"], "vllm:a"),
    "facts": ill.spark(service=ill.service(unit={"NRestarts": "2"})),
    "used_disk": decode(DiskUsage, _DATA["THINGS"]),
    "pruned": decode(DiskUsage, _DATA["THINGS"]),
    "removed": RemovalAnswer(("service qwen36", "3 releases"), ("the models",)),
    "deep_smoke": {"qwen36": decode(DeepResult, _DATA["SMOKE"])},
    "controlled": ControlAnswer(("qwen36",), {"qwen36": "stopped"}),
    "activated": ActivateAnswer(
        ("chat", "qwen36"), "evening", "qwen36", switch="c" * 12, result="good", down_seconds=41.5
    ),
    "in_maintenance": MaintenanceAnswer(
        Maintenance("ann@laptop", 1_800_000_000.0, "a new fan"),
        ("qwen36 has left every pool, and is drained",),
    ),
    "known_keys": (),
    "renewed_keys": (),
    "report": (UsageRow("2026-07-01", "laptop", "qwen36-fast", 12, 1, 9000, 4000, 120.5, 0),),
}


#: Every command that prints a document and needs no running engine -> its command line.
COMMANDS = {
    name: f"{name} {_DATA['ARGUMENTS'].get(name, '')}".strip().replace("ROOT", str(ROOT))
    for name in sorted(documents())
    if name not in ("bench", "chat")
}


@cache
def _site() -> TemporaryDirectory[str]:
    """A site of five hosts with a lock, a CA, results and keys, to be copied."""
    result = TemporaryDirectory()
    folder = Path(result.name)
    (folder / "inventory").mkdir()
    (folder / "inventory/lab.py").write_text(_INVENTORY)
    shutil.copytree(ROOT / "group_data", folder / "group_data")
    with (folder / "group_data/all.py").open("a") as settings:
        settings.write('keys = {"openclaw": {}}\nnotify = ["ntfy:my-topic"]\n')
    with contextlib.chdir(folder):
        hosts = plan_fleet(read_inventory(Path("inventory/lab.py"))).or_raise().values()
    (folder / "fleet.lock").write_text(locked(*[host.plan for host in hosts]))
    (folder / CA).parent.mkdir(parents=True)
    (folder / CA).write_text(_PEM)
    if "report" in COMMANDS and "bench" in documents():
        example_report = importlib.import_module("lab.example_report")
        example_report.write(folder / ".sparkwright", hosts=5, runs=3)
    (folder / ".sparkwright/keys").mkdir(exist_ok=True)
    for name in ("api_key", "keys/openclaw"):
        (folder / ".sparkwright" / name).write_text(f"sk-a-key-of-sixteen-or-more-{name}")
        (folder / ".sparkwright" / name).chmod(0o600)
    return result


@pytest.fixture
def fleet(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five answering hosts, and a copy of their site, which is the current folder."""
    shutil.copytree(_site().name, here, dirs_exist_ok=True)
    answers = dict(ANSWERS)
    if "fabric test" in COMMANDS:
        answers |= importlib.import_module("tests.unit.extras.fabric_test.measured").ANSWERS
    sessions.answering(monkeypatch, lambda asked: dict.fromkeys(HOSTS, answers[asked.name]))
    for name in ("_contexts", "_runtimes"):
        monkeypatch.setattr(bundle_command, name, lambda *_: None)
    monkeypatch.setattr(bundle_command, "_fetch", lambda *_, **__: True)
    return here


def run(*arguments: str) -> Result:
    """A command, given as one text with blanks between its words."""
    return sessions.run(*(part for word in arguments for part in word.split(" ")))

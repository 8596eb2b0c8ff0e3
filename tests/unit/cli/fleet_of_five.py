"""Five hosts, three of them equal, and what they answer: for tests of what every command prints."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from docs.generate.documents import documents
from sparkwright.bootstrap.gpu_question import Box
from sparkwright.checks.fabric.groups import FabricLook
from sparkwright.checks.smoke.verdict import DeepResult
from sparkwright.cli import bundle as bundle_command
from sparkwright.cli import main
from sparkwright.config.inventory import read_inventory
from sparkwright.config.tls import CA
from sparkwright.host.control import ControlAnswer
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.lib.records import decode
from sparkwright.host.maintenance import MaintenanceAnswer
from sparkwright.host.removal import RemovalAnswer
from sparkwright.resolve.lock import from_resolution, render_lock
from sparkwright.site.fleet import plan_fleet
from tests.unit.builders import ROOT, resolution
from tests.unit.checks.fabric import states as fabric
from tests.unit.checks.service import builders as ill
from tests.unit.cli.answering import answering
from tests.unit.results.test_status import answer

SPARKS = ("spark-1", "spark-2", "spark-3")
HOSTS = (*SPARKS, "rtx-1", "rtx-2")
_INVENTORY = f'sparks = {list(SPARKS)!r}\nrtx50 = ["rtx-1", ("rtx-2", {{"keep_releases": 5}})]\n'
_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
LONG = "a shared library of the image is older than the driver wants it to be, as nvidia-smi says"
_CHECKS = [
    {"name": "chat", "verdict": "passed", "seconds": 0.4, "detail": "4 tokens", "cause": None},
    {"name": "tools", "verdict": "failed", "seconds": 1.5, "detail": LONG, "cause": None},
    {"name": "images", "verdict": "skipped", "seconds": 0.0, "detail": "text only", "cause": None},
]
_SMOKE = {
    "recipe": "qwen36-35b-a3b-heretic-dflash",
    "planned": "b" * 12,
    "release": "b" * 12,
    "checks": _CHECKS,
    "journal": ["INFO 07-01 10:00:00 [launcher.py:46] " + "word " * 30],
}
_THINGS = {
    "things": [
        {"kind": "model", "name": "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4", "path": "/opt/models/a",
         "size": 22_000_000_000, "frees": 0, "used_by": ["qwen36 " + "b" * 12, "the plan"]},
        {"kind": "image", "name": "ghcr.io/aeon-7/aeon-vllm-ultimate:sha256-" + "c" * 64,
         "path": "c", "size": 19_000_000_000, "frees": 19_000_000_000},
    ],
    "foreign": ["/opt/models/" + "mine-" * 8],
}  # fmt: skip
_WATCHED = {
    "texts": {"compose.yaml": "one\n" + "image: " + "word " * 30 + "\n"},
    "release": "c" * 12, "tag": "2026-06-18-v0.23.0-dflashfix", "drift": ["release", "compose"],
}  # fmt: skip
#: Answer of a host to each question.
ANSWERS: dict[str, Any] = {
    "deployment": answer(planned=_WATCHED),
    "fabric": FabricLook(fabric.pair()["spark-1"], "vllm:a"),
    "facts": ill.spark(service=ill.service(unit={"NRestarts": "2"})),
    "used_disk": decode(DiskUsage, _THINGS),
    "pruned": decode(DiskUsage, _THINGS),
    "removed": RemovalAnswer(("service qwen36", "3 releases"), ("the models",)),
    "deep_smoke": {"qwen36": decode(DeepResult, _SMOKE)},
    "controlled": ControlAnswer(("qwen36",), {"qwen36": "stopped"}),
    "activated": ActivateAnswer(
        known=("chat", "qwen36"),
        group="evening",
        was="qwen36",
        switch="c" * 12,
        result="good",
        down_seconds=41.5,
    ),
    "in_maintenance": MaintenanceAnswer(
        Maintenance("ann@laptop", 1_800_000_000.0, "a new fan"),
        ("qwen36: out of the pool, and drained",),
    ),
    "known_keys": (),
    "renewed_keys": (),
}


#: What commands must be given beside the inventory, which is left out.
_ARGUMENTS = {
    "activate": "chat --yes",
    "advise": "agents",
    "bundle": "out",
    "catalog new": "model made --directory new",
    "catalog schema": "recipe",
    "catalog search": "heretic",
    "catalog show": "qwen36-35b-a3b-heretic-dflash",
    "check": "--data image_tag=2026-06-11-pr41703",
    "discover": "--no-mdns",
    "import": f"{ROOT}/tests/fixtures/recipes/registry/recipes/generated.yaml --dry",
    "init": "new --host spark-1 --gpu gb10 --host rtx-1 --gpu rtx5080",
    "key revoke": "openclaw",
    "lock": "--check",
    "maintenance": "spark-1 on",
    "monitoring": "--output out",
    "notify": "--dry",
    "render": "out",
    **dict.fromkeys(("models prune", "remove", "restart", "start", "stop"), "--yes"),
}
#: Every command that prints a document and needs no engine that answers -> its words.
COMMANDS = {
    name: f"{name} {_ARGUMENTS.get(name, '')}".strip()
    for name in sorted(documents())
    if name not in ("bench", "chat")
}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site of five hosts with a lock, a CA, results and keys; its folder is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text(_INVENTORY)
    shutil.copytree(ROOT / "group_data", tmp_path / "group_data")
    with (tmp_path / "group_data/all.py").open("a") as settings:
        settings.write('keys = {"openclaw": {}}\nnotify = ["ntfy:my-topic"]\n')
    hosts = plan_fleet(read_inventory(Path("inventory/lab.py"))).or_raise().values()
    locks = [from_resolution([one.plan.references], resolution(one.plan), None) for one in hosts]
    images = {name: one for lock in locks for name, one in lock.images.items()}
    models = {name: one for lock in locks for name, one in lock.models.items()}
    lock = locks[0].model_copy(update={"images": images, "models": models})
    (tmp_path / "fleet.lock").write_text(render_lock(lock))
    CA.parent.mkdir(parents=True)
    CA.write_text(_PEM)
    if "report" in COMMANDS and "bench" in documents():
        example_report = importlib.import_module("lab.example_report")
        example_report.write(tmp_path / ".sparkwright", hosts=5, runs=3)
    (tmp_path / ".sparkwright/keys").mkdir(exist_ok=True)
    for name in ("api_key", "keys/openclaw"):
        (tmp_path / ".sparkwright" / name).write_text(f"sk-a-key-of-sixteen-or-more-{name}")
        (tmp_path / ".sparkwright" / name).chmod(0o600)
    answers = dict(ANSWERS)
    if "fabric test" in COMMANDS:
        answers |= importlib.import_module("tests.unit.extras.fabric_test.answers").ANSWERS
    answering(monkeypatch, lambda asked: dict.fromkeys(HOSTS, answers[asked.name]))
    for name in ("_contexts", "_runtimes"):
        monkeypatch.setattr(bundle_command, name, lambda *_: None)
    monkeypatch.setattr(bundle_command, "_fetch", lambda *_, **__: True)
    boxes = [Box(name, "known_hosts", "gb10", "NVIDIA GB10") for name in HOSTS]
    boxes.append(Box("nas", "~/.ssh/config", None, why="word " * 20))
    if "discover" in COMMANDS:
        for name in ("command", "names"):
            place = f"sparkwright.extras.discover.{name}.discovered"
            monkeypatch.setattr(place, lambda **_: boxes)
    return tmp_path


def run(*words: str) -> Result:
    """A command's output and exit code; it never ends with a traceback."""
    done = CliRunner().invoke(main, [part for one in words for part in one.split(" ")])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done

"""Removal reads the files on the host, and removes only files of sparkwright."""

import json
from pathlib import Path

import pytest

from sparkwright.host import removal
from sparkwright.host.lib import docker, receipt, systemd
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.removal import RemovalRequest

COMMIT = "c" * 40


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Commands that Docker got; systemd's units are in a folder of the test."""
    texts: list[tuple[str, ...]] = []

    def command(*arguments: str, **_: object) -> Outcome:
        texts.append(arguments)
        return Outcome(0)

    for name in ("units", "run"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(systemd, "UNITS", tmp_path / "units")
    monkeypatch.setattr(systemd, "TRANSIENT", tmp_path / "run")
    monkeypatch.setattr(systemd, "systemctl", lambda *_: Outcome(0))
    monkeypatch.setattr(docker, "docker", command)
    monkeypatch.setattr(docker, "image_names", lambda: ["somebody/else:latest"])
    return texts


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Files of the user in another folder of the host."""
    folder = tmp_path / "home/models" / COMMIT
    folder.mkdir(parents=True)
    (folder / "kept").write_text("mine")
    (folder / receipt.NAME).write_text('{"files": {}}')
    return folder


def test_targets_of_links_are_kept(tmp_path: Path, ran: list[tuple[str, ...]], mine: Path) -> None:
    root, models = tmp_path / "root", tmp_path / "models"
    (root / "services").mkdir(parents=True)
    (root / "services/qwen36").symlink_to(mine)
    (root / "state").symlink_to(mine)
    models.mkdir()
    (models / "a--b").symlink_to(mine.parent)
    (models / "c--d").mkdir()
    (models / "c--d" / COMMIT).symlink_to(mine)
    removal_request = RemovalRequest(str(models), str(root), ("qwen36",))
    removal.main(removal_request)
    assert (mine / "kept").read_text() == "mine"
    answer = removal.main(RemovalRequest(str(models), str(root), None, weights=True))
    assert (mine / "kept").read_text() == "mine"
    assert not root.exists()
    assert f"{models}/a--b/{COMMIT}: not sparkwright's" in answer.left


def test_a_service_name_that_points_outside_the_root_is_ignored(
    tmp_path: Path, ran: list[tuple[str, ...]], mine: Path
) -> None:
    root = tmp_path / "root"
    (root / "services").mkdir(parents=True)
    names = ("../../home", "..", str(mine), "a/../../../home")
    answer = removal.main(RemovalRequest(str(tmp_path), str(root), names))
    assert answer.done == ()
    assert (mine / "kept").exists()


def test_only_valid_container_names_of_a_history_are_used(
    tmp_path: Path, ran: list[tuple[str, ...]]
) -> None:
    root = tmp_path / "root"
    (root / "state").mkdir(parents=True)
    lines = [
        {"unmanaged": ["--help always", "-v/:/host always", "a;reboot", "by-hand always", 5]},
        {"unmanaged": "by-hand"}, {"unmanaged": [["x"]]}, {"unmanaged": ["other evil --rm"]},
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines))
    (root / "state/history.jsonl").write_text(text)
    answer = removal.main(RemovalRequest(str(tmp_path / "models"), str(root)))
    assert ran == [("update", "--restart=always", "by-hand"), ("start", "by-hand")]
    assert answer.done[-1] == "container by-hand is started again"

"""What a box is, by ssh; and ``sparkwright discover`` and ``init --discover`` of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkwright.bootstrap.gpu_question import Box
from sparkwright.cli import main
from sparkwright.extras.discover import command as discover_command
from sparkwright.extras.discover import names

BOXES = [
    Box("spark-1", "mDNS", "gb10", "NVIDIA GB10"),
    Box("rtx-1", "ssh_config", "rtx5090", "NVIDIA GeForce RTX 5090"),
    Box("nas", "mDNS", why="\x1b[2JPermission denied"),
]


@pytest.fixture(autouse=True)
def lan(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*, mdns: bool) -> list[Box]:
        return BOXES if mdns else []

    monkeypatch.setattr(discover_command, "discovered", found)
    monkeypatch.setattr(names, "discovered", found)


def test_the_table_and_its_json() -> None:
    done = CliRunner().invoke(main, ["discover"])
    assert done.exit_code == 0
    assert done.output.splitlines()[1].split() == ["spark-1", "gb10", "NVIDIA", "GB10", "mDNS"]
    assert "\x1b" not in done.output
    assert (
        json.loads(CliRunner().invoke(main, ["discover", "--json"]).output)[1]["gpu"] == "rtx5090"
    )
    assert CliRunner().invoke(main, ["discover", "--no-mdns"]).exit_code == 1


def test_init_writes_those_with_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["init", "lab", "--discover"])
    assert done.exit_code == 0, done.output
    assert "nas" in done.output
    assert "left out" in done.output
    text = (tmp_path / "lab/inventory/lab.py").read_text()
    assert 'sparks = ["spark-1"]' in text
    assert 'rtx50 = ["rtx-1"]' in text
    assert "nas" not in text


def test_init_overwrites_nothing_and_asks_nobody_before_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab/inventory").mkdir(parents=True)
    (tmp_path / "lab/inventory/lab.py").write_text("mine\n")

    def never(**_: bool) -> list[Box]:
        raise AssertionError("the LAN was asked")

    monkeypatch.setattr(names, "discovered", never)
    done = CliRunner().invoke(main, ["init", "lab", "--discover"])
    assert done.exit_code == 2
    assert "in the way" in done.output
    assert (tmp_path / "lab/inventory/lab.py").read_text() == "mine\n"
    assert not (tmp_path / "lab/deploy.py").exists()


def test_init_that_finds_none_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["init", "lab", "--discover", "--no-mdns"])
    assert done.exit_code == 2
    assert not (tmp_path / "lab").exists()
    words = ["init", "lab", "--discover", "--host", "a", "--gpu", "gb10"]
    assert CliRunner().invoke(main, words).exit_code == 2

"""What a box is, by ssh; and ``sparkwright discover`` and ``init --discover`` of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from sparkwright.extras.discover.asking import Box

from sparkwright.cli import init as init_command
from sparkwright.cli import main
from sparkwright.extras.discover import asking
from sparkwright.extras.discover import command as discover_command
from sparkwright.extras.discover.names import Candidate
from sparkwright.host.lib.gpu import parse

SAID = {
    "spark-1": (0, "Welcome!\nNVIDIA GB10, 12.1, 580.95.05, [N/A]\n", ""),
    "rtx-1": (0, "NVIDIA GeForce RTX 5090, 12.0, 580.95.05, 32607 MiB\n", ""),
    "old": (0, "NVIDIA H200, 9.0, 580.159.04, 143771 MiB\n", ""),
    "printer": (255, "", "Permission denied (publickey).\n"),
    "new": (255, "", "No ED25519 host key is known\nHost key verification failed.\n"),
    "bare": (127, "", "bash: nvidia-smi: command not found\n"),
}


def run(words: Sequence[str]) -> tuple[int, str, str]:
    return SAID[words[-2]]


def test_what_each_is() -> None:
    found = asking.boxes([Candidate(name, (), "mDNS") for name in SAID], run)
    assert [(one.name, one.gpu) for one in found] == [
        ("spark-1", "gb10"), ("rtx-1", "rtx5090"), ("old", None), ("printer", None), ("new", None),
        ("bare", None),
    ]  # fmt: skip
    assert found[2].shown == "NVIDIA H200"
    assert [one.why for one in found[3:]] == [
        "Permission denied (publickey).", "Host key verification failed.",
        "bash: nvidia-smi: command not found",
    ]  # fmt: skip
    assert asking.boxes([], run) == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NVIDIA GeForce RTX 5080, 12.0, 580.1, 16303 MiB", "rtx5080"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 12.0, 580.1, 97887 MiB",
         "rtx-pro-6000"),
        ("NVIDIA GeForce RTX 5070 Ti, 12.0, 580.1, 16303 MiB", "rtx5080"),
        ("NVIDIA GeForce RTX 5060, 12.0, 580.1, 8151 MiB", None),
        ("NVIDIA GeForce RTX 4090, 8.9, 580.1, 24564 MiB", None),
        ("NVIDIA GB10, 12.1, 580.1, Not Supported", "gb10"),
    ],
)  # fmt: skip
def test_its_name_for_init(line: str, kind: str | None) -> None:
    assert asking.kind(parse(line)[0]) == kind


def test_ssh_asks_nobody_and_takes_no_key() -> None:
    words = asking.words("spark-1")
    assert words[-3:-1] == ["--", "spark-1"]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no"):
        assert option in words


BOXES = [
    Box("spark-1", "mDNS", "gb10", "NVIDIA GB10"),
    Box("rtx-1", "ssh_config", "rtx5090", "NVIDIA GeForce RTX 5090"),
    Box("nas", "mDNS", why="\x1b[2JPermission denied"),
]


@pytest.fixture(autouse=True)
def lan(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*, mdns: bool) -> list[Box]:
        return BOXES if mdns else []

    monkeypatch.setattr(discover_command, "found", found)
    monkeypatch.setattr(init_command, "found", found)


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

    monkeypatch.setattr(init_command, "found", never)
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

"""Every command that goes to hosts takes pyinfra's options of the connection."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from docs.generate.commands import commands
from sparkwright.cli import main, module_of
from sparkwright.cli.lib.connecting import OPTIONS, SECRETS
from sparkwright.cli.lib.hosts import command_line
from tests.unit.builders import ROOT

#: What of sparkwright/cli/ starts pyinfra.
_STARTS = {"ask_hosts", "become", "command_line", "deployments"}
#: What pyinfra gets for each option, and what the user writes.
GIVEN = ["--user", "me", "--port", "2222", "--key", "id", "--same-sudo-password", "--parallel", "2"]
GOT = ["--ssh-user", "me", "--ssh-port", "2222", "--ssh-key", "id", "--same-sudo-password",
       "--parallel", "2"]  # fmt: skip
#: It hands its words over as they are.
_AS_IT_IS = {"deploy"}


def _going_to_hosts() -> dict[str, click.Command]:
    """Commands whose module starts pyinfra, by their words; of groups, all."""
    found = {}
    for words, command, _ in commands():
        file = ROOT / f"{module_of(words.split()[0]).replace('.', '/')}.py"
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {one.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                 for one in node.names}  # fmt: skip
        if names & _STARTS or "verify" in words:
            found[words] = command
    return {words: one for words, one in found.items() if words not in _AS_IT_IS}


def test_the_commands_are_found() -> None:
    assert {"status", "bench", "key rotate", "models prune", "verify"} <= set(_going_to_hosts())


@pytest.mark.parametrize("words", _going_to_hosts())
def test_every_command_that_goes_to_hosts_takes_them(words: str) -> None:
    named = {name for one in _going_to_hosts()[words].params for name in one.opts}
    assert {name for names, _, _ in OPTIONS for name in names} <= named
    assert set(SECRETS) <= named


def test_pyinfra_knows_every_one_of_them() -> None:
    pyinfra = Path(sys.executable).with_name("pyinfra")
    shown = subprocess.run([pyinfra, "--help"], capture_output=True, text=True, check=True).stdout
    for names in (*(names for names, _, _ in OPTIONS), tuple(SECRETS)):
        for name in names:
            assert name in shown


def test_they_are_handed_to_pyinfra(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def run(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(words)
        return subprocess.CompletedProcess(words, 1, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    CliRunner().invoke(main, ["doctor", "inventory/lab.py", *GIVEN])
    CliRunner().invoke(main, ["doctor", "inventory/lab.py"])
    first, second = seen
    assert first[2 : 2 + len(GOT)] == GOT
    assert not set(GOT) & set(second[2:])


def test_all_hosts_are_a_group_everywhere() -> None:
    words = command_line(Path("inventory/lab.py"), ("all", "spark-1"), (), "roles.status.status")
    assert "--limit" not in words
    words = command_line(Path("inventory/lab.py"), ("spark-1",), (), "roles.status.status")
    assert words.count("--limit") == 1

"""No password on a command line: every user of the controller can read it there."""

from __future__ import annotations

import os
import subprocess

import pytest
from click.testing import CliRunner

from sparkwright.cli import main
from sparkwright.cli.lib.connecting import SECRETS
from tests.unit.builders import ROOT


@pytest.mark.parametrize("command", ["status", "deploy", "key list"])
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("joined", [True, False])
def test_no_password_gets_onto_a_command_line(
    command: str, name: str, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("pyinfra was started"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it was started"))
    words = [f"{name}=s3cret"] if joined else [name, "s3cret"]
    done = CliRunner().invoke(main, [*command.split(), "inventory/lab.py", *words])
    assert done.exit_code == 2, done.output
    assert f"{name}\n      observed: a password on a command line" in done.output
    assert "s3cret" not in done.output
